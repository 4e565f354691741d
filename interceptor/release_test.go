// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// watchedContext is a context that counts who waits for its end: package context calls its AfterFunc, also for contexts made from it.
type watchedContext struct {
	context.Context

	done    chan struct{}
	waiting atomic.Int32
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

func (c *watchedContext) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	var stopped atomic.Bool
	return func() bool {
		first := stopped.CompareAndSwap(false, true)
		if first {
			c.waiting.Add(-1)
		}
		return first
	}
}

// When a call has ended, nothing waits for the end of its context any more. A program may make all its calls with one that never ends.
func TestRelease_Context(t *testing.T) {
	timed := config(plain())
	timed.Methods[0].Timeout = time.Minute
	observed := config(plain())
	observed.Mode = "OBSERVE"
	for name, c := range map[string]spec.Config{
		"no policy": {}, "retries": config(plain()), "a timeout": timed, "slow attempts": config(hasty()), "hedges": hedged(), "mode OBSERVE": observed,
	} {
		for how, script := range map[string][]testserver.Step{
			"success":     {text("a")},
			"failures":    {down()},
			"a retry":     {down(), text("a")},
			"two at once": {faults.Play(faults.Receive(1), faults.Pause(2*time.Second), say("a")), text("b")},
		} {
			for kind, desc := range callKinds {
				t.Run(fmt.Sprint(name, ", ", how, ", ", kind), func(t *testing.T) {
					play(t, c, func(t *testing.T, s scene) {
						s.On(get, script...)
						ctx := &watchedContext{Context: context.Background(), done: make(chan struct{})}
						var err error
						if desc == nil {
							_, err = s.call(ctx, get)
						} else {
							stream := testkit.Must(s.conn.NewStream(ctx, desc, get))(t)
							send(t, stream, "x")
							_ = stream.CloseSend()
							_, err = receive(stream)
							err = streamEnd(err)
						}
						if code := status.Code(err); code != codes.OK && code != codes.Unavailable {
							t.Error(err)
						}
						time.Sleep(2 * time.Second)
						synctest.Wait()
						if n := ctx.waiting.Load(); n != 0 {
							t.Errorf("%d still wait for the end of the context", n)
						}
					})
				})
			}
		}
	}
}
