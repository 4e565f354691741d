// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/lab/peers"
)

// patient is the plan of clients whose calls should wait.
var patient = peers.Plan{Attempts: 4, Initial: never, Max: never}

// held is the memory of this process.
type held struct{ heap, stacks, goroutines float64 }

// hold measures, after garbage collection: the second one empties pools, and finalizers let go of more, which the next one
// takes.
func hold() held {
	var m runtime.MemStats
	for last := uint64(math.MaxUint64); ; last = m.HeapAlloc {
		debug.FreeOSMemory()
		if runtime.ReadMemStats(&m); m.HeapAlloc >= last-last/1000 {
			break
		}
	}
	return held{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}

// since returns the growth since an earlier measurement, for each of n things.
func (h held) since(before held, n int) held {
	of := float64(n)
	return held{(h.heap - before.heap) / of, (h.stacks - before.stacks) / of, (h.goroutines - before.goroutines) / of}
}

// memories returns the tables of clients' memory.
func memories(o options) []table {
	bytes := column{"bytes", wholeCell}
	return []table{
		{
			name: "waiting", what: fmt.Sprintf("Memory of each of %d calls that wait in a backoff at the same time, on heap and stacks", o.waiting),
			columns: []column{bytes, {"more", wholeCell}, {"goroutines", tenthCell}}, rows: waiting, processes: 1,
		}, {
			name: "replay", what: fmt.Sprintf("Memory of each of %d streams that have sent 64 messages of 1 KiB, on the heap", o.streams),
			columns: []column{bytes, {"more", wholeCell}, {"bytes, once committed", wholeCell}, {"more, once committed", wholeCell}}, rows: replaying, processes: 3,
		}, {
			name: "scale", what: "Memory of a Retrier, on the heap",
			columns: []column{bytes, {"goroutines", tenthCell}}, rows: scale, processes: 3,
		},
	}
}

// ready waits for a connection.
func ready(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("no connection: %v after a minute", state)
		}
	}
	return nil
}

// A stream's messages before the server answers.
const (
	replayMessages = 64
	replaySize     = 1 << 10
)

// replaying measures streams with replayable messages: before the server answers, and after.
func replaying(o options) ([]row, error) {
	var rows []row
	for _, k := range replayers(o.streams) {
		before, after, err := replayingOf(k, o.streams)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		base := []float64{before, 0, after}
		if len(rows) > 0 {
			base = rows[0].Values
		}
		rows = append(rows, row{k.name, []float64{before, before - base[0], after, after - base[2]}})
	}
	return rows, nil
}

// replayers are the clients that replay client streams, after one that does not. stagger keeps all streams, or as many as
// fit into 16 MiB.
func replayers(streams int) []client {
	room := interceptor.WithMaxReplayBytes(int64(streams) << 17)
	return []client{
		bare, builtIn,
		{"stagger, up to 16 MiB (default)", staggerRetries(budgetName)},
		{fmt.Sprintf("stagger, up to %d MiB", streams>>3), staggerRetries(budgetName, room)},
	}
}

func replayingOf(k client, n int) (before, after float64, err error) {
	made, err := k.prepare(patient)
	if err != nil {
		return 0, 0, err
	}
	answered := make(chan struct{})
	var absorbed atomic.Int64
	s := serve(succeed, func(stream grpc.ServerStream) error {
		defer func() { <-stream.Context().Done() }() // an ended stream
		if err := receive(stream, replayMessages-1); err != nil {
			return err
		}
		absorbed.Add(1)
		<-answered
		return send(stream, 1)
	})
	defer s.Stop()
	conn, err := s.dial(made.options)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := errors.Join(ready(conn), idle(func() bool { return true }, nil)); err != nil {
		return 0, 0, err
	}
	empty := hold()
	streams := make([]grpc.ClientStream, n)
	for i := range streams {
		if streams[i], err = uploaded(ctx, conn); err != nil {
			return 0, 0, err
		}
	}
	if err := idle(func() bool { return absorbed.Load() == int64(n) }, nil); err != nil {
		return 0, 0, err
	}
	kept := hold()
	close(answered)
	for _, stream := range streams {
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			return 0, 0, err
		}
	}
	committed := hold()
	runtime.KeepAlive(streams)
	return kept.since(empty, n).heap, committed.since(empty, n).heap, nil
}

// uploaded returns a stream that has sent its messages, and has no answer yet.
func uploaded(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, streamMethod)
	if err != nil {
		return nil, err
	}
	m := wrapperspb.String(strings.Repeat("x", replaySize))
	for range replayMessages {
		if err := stream.SendMsg(m); err != nil {
			return nil, err
		}
	}
	return stream, nil
}

func receive(stream grpc.ServerStream, n int) error {
	for range n {
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			return err
		}
	}
	return nil
}

// scale measures the memory of a Retrier itself, and of each policy, method and target.
func scale(options) (rows []row, err error) {
	const n = 1000
	var retriers [n]setup
	var methods setup
	targets, err := manyTargets(n).prepare(patient)
	if err != nil {
		return nil, err
	}
	defer closeAll(targets.conns)
	call := func(through *setup) func() error {
		return func() error { return stub(*through, succeed).repeat(1)(n) }
	}
	for _, what := range []struct {
		name string
		add  func() error
	}{
		{"an idle Retrier", func() (err error) {
			for i := range retriers {
				if retriers[i], err = stagger.prepare(patient); err != nil {
					return err
				}
			}
			return nil
		}},
		{"a method's policy", func() (err error) {
			methods, err = manyMethods(n, n).prepare(patient)
			return err
		}},
		{"a method that was called", call(&methods)},
		{"a target that was called", call(&targets)},
	} {
		before := hold()
		if err := what.add(); err != nil {
			return nil, fmt.Errorf("%s: %w", what.name, err)
		}
		h := hold().since(before, n)
		rows = append(rows, row{what.name, []float64{h.heap, h.goroutines}})
	}
	runtime.KeepAlive(&retriers)
	runtime.KeepAlive(methods)
	return rows, nil
}
