// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/testserver"
)

// arrive sends n calls of method at the same time and says after how long each outcome came.
func (s scene) arrive(ctx context.Context, method string, n int) string {
	var mu sync.Mutex
	outcomes := map[string]int{}
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			a := s.call(ctx, method)
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprintf("%v@%v", a.code(), a.elapsed)]++
		})
	}
	calls.Wait()
	return fmt.Sprint(outcomes)
}

func TestQueue(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.OK().Through(testserver.NewQueue(2, 100*ms, 3)))
		got := s.arrive(t.Context(), get, 7)
		wantText(t, "outcomes", got, "map[OK@100ms:2 OK@200ms:2 OK@300ms:1 ResourceExhausted@0s:2]")
		wantText(t, "outcomes when it is idle again", s.arrive(t.Context(), get, 1), "map[OK@100ms:1]")
	})
}

func TestQueueRefuseWith(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.OK().Through(testserver.NewQueue(1, 100*ms, 0, testserver.RefuseWith(codes.Unavailable))))
		wantText(t, "outcomes", s.arrive(t.Context(), get, 3), "map[OK@100ms:1 Unavailable@0s:2]")
	})
}

func TestQueueIsShared(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		other := testserver.Start(t)
		second := scene{other, other.Dial(t)}
		shared := testserver.OK().Through(testserver.NewQueue(1, time.Second, 10))
		s.On(get, shared)
		s.On(list, shared)
		other.On(get, shared)
		var rest sync.WaitGroup
		rest.Go(func() { s.call(t.Context(), get) })
		synctest.Wait()
		rest.Go(func() { second.call(t.Context(), get) })
		synctest.Wait()
		wantText(t, "the third", s.arrive(t.Context(), list, 1), "map[OK@3s:1]")
		rest.Wait()
	})
}

// abandon fills a queue of one worker with calls that give up after 1 s, then sends one more.
func abandon(t *testing.T, s scene, opts ...testserver.QueueOption) (string, testserver.Load) {
	t.Helper()
	queue := testserver.NewQueue(1, 10*time.Second, 5, opts...)
	s.On(get, testserver.OK().Through(queue))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantText(t, "abandoned", s.arrive(ctx, get, 3), "map[DeadlineExceeded@1s:3]")
	synctest.Wait()
	got := s.arrive(t.Context(), get, 1)
	return got, queue.Load()
}

func TestQueueServesAbandoned(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		got, load := abandon(t, s)
		wantText(t, "the call after them", got, "map[OK@39s:1]")
		if want := (testserver.Load{Served: 4, Abandoned: 3}); load != want {
			t.Errorf("load %+v; want %+v", load, want)
		}
	})
}

func TestQueueDropAbandoned(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		got, load := abandon(t, s, testserver.DropAbandoned())
		wantText(t, "the call after them", got, "map[OK@19s:1]") // the one being served keeps its worker
		if want := (testserver.Load{Served: 2, Abandoned: 3}); load != want {
			t.Errorf("load %+v; want %+v", load, want)
		}
	})
}

func TestQueueLoad(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		queue := testserver.NewQueue(2, time.Second, 3)
		s.On(get, testserver.Fail(codes.Aborted).Through(queue))
		var calls sync.WaitGroup
		calls.Go(func() {
			wantText(t, "outcomes", s.arrive(t.Context(), get, 6),
				"map[Aborted@1s:2 Aborted@2s:2 Aborted@3s:1 ResourceExhausted@0s:1]")
		})
		synctest.Wait()
		if got, want := queue.Load(), (testserver.Load{Busy: 2, Waiting: 3, Refused: 1}); got != want {
			t.Errorf("load %+v; want %+v", got, want)
		}
		calls.Wait()
		if got, want := queue.Load(), (testserver.Load{Served: 5, Refused: 1}); got != want {
			t.Errorf("load afterwards %+v; want %+v", got, want)
		}
	})
}

func TestQueueSetWorkers(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		queue := testserver.NewQueue(4, time.Second, 10)
		s.On(get, testserver.OK().Through(queue))
		set := func(workers int) {
			if err := queue.SetWorkers(workers); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(500*ms, func() { set(1) })  // the four that are served end; then it is one at a time
		time.AfterFunc(2500*ms, func() { set(0) }) // who is served ends, and no other is
		time.AfterFunc(10*time.Second, func() { set(2) })
		wantText(t, "outcomes", s.arrive(t.Context(), get, 9), "map[OK@11s:2 OK@12s:1 OK@1s:4 OK@2s:1 OK@3s:1]")
		if err := queue.SetWorkers(-1); err == nil || queue.Load().Busy != 0 {
			t.Errorf("-1 workers: %v", err)
		}
	})
}
