// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Whatever of the user's panics in a stream comes up in the application's goroutine, and nothing is held then.
func TestStreamPanic_Callbacks(t *testing.T) {
	t.Parallel()
	culprits := []string{
		"leave 1", "leave 2", "done", "state", "start", "fail", "withdraw", "settle", "return", "finish", "classifier", "resume",
	}
	var reached sync.Map
	t.Cleanup(func() {
		for _, culprit := range culprits {
			if _, ok := reached.Load(culprit); !ok {
				t.Errorf("nothing has made panic: %s", culprit)
			}
		}
	})
	slowFirst := moves.Play(moves.Receive(1), moves.Pause(150*ms)).Then(down())
	for mode, row := range map[string]struct {
		config policy.Config
		desc   *grpc.StreamDesc
		steps  []testserver.Step
	}{
		"retries":      {config(plain()), bidiStream, []testserver.Step{down(), down(), text("hello")}},
		"beside":       {config(besides()), bidiStream, []testserver.Step{slowFirst, testserver.Hang()}},
		"late in wait": {config(hasty()), bidiStream, []testserver.Step{moves.Play(moves.Receive(1), moves.Pause(1050*ms), say("late"))}},
		"hedges":       {hedged(), bidiStream, []testserver.Step{slowFirst, testserver.Hang()}},
		"resumed":      {config(plain()), serverStream, []testserver.Step{moves.Play(say("one")).Then(down()), moves.Play(say("two"))}},
	} {
		paid(row.config)
		for _, culprit := range culprits {
			t.Run(strings.ReplaceAll(mode+"/"+culprit, " ", "_"), func(t *testing.T) {
				p := &panics{
					fuse: &fuse{limit: 10}, till: &till{purse: &purse{grants: 99}}, culprit: culprit,
				}
				options := append(p.options(true), described(t))
				play(t, row.config, func(t *testing.T, s scene) {
					s.On(get, row.steps...)
					p.stream(t, s, row.desc)
					if p.reached.Load() {
						reached.Store(culprit, true)
					}
				}, options...)
			})
		}
	}
}

// stream makes a stream, of which the application is to see the panic, and sees what is left.
func (p *panics) stream(t *testing.T, s scene, desc *grpc.StreamDesc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := caught(func() {
		stream, err := s.conn.NewStream(ctx, desc, get, interceptor.Resume(func(last proto.Message) (proto.Message, bool) {
			p.blame("resume")
			return last, true
		}))
		if err != nil {
			t.Error(err)
			return
		}
		_ = stream.SendMsg(wrapperspb.String("x"))
		_ = stream.CloseSend()
		_, _ = receive(stream)
	})
	time.Sleep(time.Second) // virtual: long before the deadline, so that nothing waits for that
	if ctx.Err() == nil && p.reached.Load() != (seen == p.culprit) {
		t.Errorf("the application sees the panic %v", seen)
	}
	if left := held(s.retrier, p.fuse, p.till); left != "" {
		t.Errorf("held: %s; %v", left, p)
	}
	time.Sleep(time.Hour)
}
