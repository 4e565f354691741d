// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

const (
	get  = "/acme.orders.v1.OrderService/GetOrder"
	list = "/acme.orders.v1.OrderService/ListOrders"
	ms   = time.Millisecond
)

// scene is a server in memory with one connection to it.
type scene struct {
	*testserver.Server
	conn *grpc.ClientConn
}

// stage runs play in virtual time.
func stage(t *testing.T, play func(t *testing.T, s scene)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t)
		play(t, scene{srv, srv.Dial(t)})
	})
}

func newQueue(t *testing.T, c faults.QueueConfig) *faults.Queue {
	t.Helper()
	return testkit.Must(faults.NewQueue(c))(t)
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s; want %s", what, got, want)
	}
}

// arrive sends n calls of method at the same time and says after how long each outcome came.
func (s scene) arrive(ctx context.Context, method string, n int) string {
	var mu sync.Mutex
	outcomes := map[string]int{}
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			start := time.Now()
			code := status.Code(s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}))
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprintf("%v@%v", code, time.Since(start))]++
		})
	}
	calls.Wait()
	return fmt.Sprint(outcomes)
}

func TestQueue(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, newQueue(t, faults.QueueConfig{Workers: 2, Time: 100 * ms, Length: 3}).Serve(testserver.OK()))
		got := s.arrive(t.Context(), get, 7)
		wantText(t, "outcomes", got, "map[OK@100ms:2 OK@200ms:2 OK@300ms:1 ResourceExhausted@0s:2]")
		wantText(t, "outcomes when it is idle again", s.arrive(t.Context(), get, 1), "map[OK@100ms:1]")
	})
}

func TestQueueIsShared(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		other := testserver.Start(t)
		second := scene{other, other.Dial(t)}
		shared := newQueue(t, faults.QueueConfig{Workers: 1, Time: time.Second, Length: 10}).Serve(testserver.OK())
		s.On(get, shared)
		s.On(list, shared)
		other.On(get, shared)
		var rest sync.WaitGroup
		rest.Go(func() { s.arrive(t.Context(), get, 1) })
		synctest.Wait()
		rest.Go(func() { second.arrive(t.Context(), get, 1) })
		synctest.Wait()
		wantText(t, "the third", s.arrive(t.Context(), list, 1), "map[OK@3s:1]")
		rest.Wait()
	})
}

// abandon fills a queue of one worker with calls that give up after 1 s, then sends one more.
func abandon(t *testing.T, s scene, drop bool) string {
	t.Helper()
	q := newQueue(t, faults.QueueConfig{Workers: 1, Time: 10 * time.Second, Length: 5, DropAbandoned: drop})
	s.On(get, q.Serve(testserver.OK()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantText(t, "abandoned", s.arrive(ctx, get, 3), "map[DeadlineExceeded@1s:3]")
	synctest.Wait()
	return s.arrive(t.Context(), get, 1)
}

func TestQueueServesAbandoned(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		wantText(t, "the call after them", abandon(t, s, false), "map[OK@39s:1]")
	})
}

func TestQueueDropAbandoned(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		wantText(t, "the call after them", abandon(t, s, true), "map[OK@19s:1]") // the one being served keeps its worker
	})
}

func TestQueueSetWorkers(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		q := newQueue(t, faults.QueueConfig{Workers: 4, Time: time.Second, Length: 10})
		s.On(get, q.Serve(testserver.OK()))
		set := func(workers int) {
			if err := q.SetWorkers(workers); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(500*ms, func() { set(1) })  // the four that are served end; then it is one at a time
		time.AfterFunc(2500*ms, func() { set(0) }) // who is served ends, and no other is
		time.AfterFunc(10*time.Second, func() { set(2) })
		wantText(t, "outcomes", s.arrive(t.Context(), get, 9), "map[OK@11s:2 OK@12s:1 OK@1s:4 OK@2s:1 OK@3s:1]")
		if err := q.SetWorkers(-1); err == nil {
			t.Errorf("-1 workers: %v", err)
		}
	})
}
