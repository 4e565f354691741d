// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

type panicsInRecv struct{ grpc.ClientStream }

func (panicsInRecv) RecvMsg(any) error { panic("inner") }

func TestStreamPanic_Hedge(t *testing.T) {
	for name, row := range map[string]struct {
		number  int // the attempt that panics
		opening bool
		wait    time.Duration // before the application receives
	}{
		"when the first is opened": {1, true, 0},
		"when a hedge is opened":   {2, true, 0},
		"in the first":             {1, false, 0},
		"in a hedge":               {2, false, 0},
		"before anybody receives":  {2, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			purse := &purse{grants: 10}
			play(t, hedged(func(h *policy.HedgeSpec) { h.Budget = "" }), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.SendHeader(nil)).Then(testserver.Hang())) // RecvMsg follows the headers
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				n := 0
				conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
					func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						n++
						if n == row.number && row.opening {
							panic("inner")
						}
						stream, err := open(ctx, desc, cc, method, opts...)
						if n == row.number {
							stream = panicsInRecv{stream}
						}
						return stream, err
					}))...)
				defer func() {
					if got := recover(); got != "inner" || n != row.number {
						t.Errorf("recovered %v after %d attempts", got, n)
					}
					if purse.bad != 1 || purse.started != 1 || s.retrier.Replayed() != 0 {
						t.Errorf("the budget: %v; %d bytes kept", purse, s.retrier.Replayed())
					}
				}()
				stream, err := conn.NewStream(ctx, bidiStream, get)
				if err != nil {
					t.Fatal(err)
				}
				send(t, stream, "x")
				time.Sleep(row.wait)
				err = stream.RecvMsg(new(wrapperspb.StringValue))
				t.Error(err)
			}, interceptor.WithBudget("", purse), described(t))
		})
	}
}

// panicsIn panics in one of its methods.
type panicsIn struct {
	grpc.ClientStream

	method string
	goexit bool
}

func (p panicsIn) in(method string) {
	switch {
	case method != p.method:
	case p.goexit:
		runtime.Goexit()
	default:
		panic("inner")
	}
}

func (p panicsIn) SendMsg(m any) error { p.in("SendMsg"); return p.ClientStream.SendMsg(m) }

func (p panicsIn) RecvMsg(m any) error          { p.in("RecvMsg"); return p.ClientStream.RecvMsg(m) }
func (p panicsIn) Header() (metadata.MD, error) { p.in("Header"); return p.ClientStream.Header() }
func (p panicsIn) CloseSend() error             { p.in("CloseSend"); return p.ClientStream.CloseSend() }

// Whatever an inner interceptor panics in, and however often the application recovers: nothing is held any more when
// the panic has come up, though the stream's context goes on.
func TestStreamPanic_LeavesNothing(t *testing.T) {
	configs := map[string]policy.Config{
		"one attempt": config(func() policy.RetrySpec { r := plain(); r.MaxAttempts = 2; return r }()),
		"retries":     config(plain()), "in place": config(hasty()), "beside": config(besides()), "hedges": hedged(),
	}
	for mode, c := range configs {
		paid(c)
		for _, method := range []string{"open", "SendMsg", "CloseSend", "Header", "RecvMsg"} {
			for number := 1; number <= 2; number++ {
				for how, goexit := range map[string]bool{"panics": false, "calls Goexit": true} {
					t.Run(fmt.Sprintf("%s/%s of attempt %d %s", mode, method, number, how), func(t *testing.T) {
						f, b := &fuse{limit: 99}, &till{purse: &purse{Budget: budget.Unlimited, grants: 99}}
						play(t, c, func(t *testing.T, s scene) {
							panickingStream(t, s, method, number, goexit)
							if left := held(s.retrier, f, b); left != "" || s.retrier.Replayed() != 0 {
								t.Errorf("held for ever: %s; %d bytes", left, s.retrier.Replayed())
							}
						}, withFuse(f), interceptor.WithBudget("", b), described(t))
					})
				}
			}
		}
	}
}

// panickingStream makes a stream whose attempt with that number panics in a method, if it comes to that.
func panickingStream(t *testing.T, s scene, method string, number int, goexit bool) {
	t.Helper()
	s.On(get, testserver.Play(testserver.Receive(1), testserver.Pause(1500*ms)).Then(down()),
		testserver.Play(testserver.SendHeader(nil), testserver.EchoAll()), testserver.Hang())
	var n atomic.Int64
	conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if n.Add(1) != int64(number) {
				return open(ctx, desc, cc, name, opts...)
			}
			p := panicsIn{nil, method, goexit}
			p.in("open")
			stream, err := open(ctx, desc, cc, name, opts...)
			p.ClientStream = stream
			return p, err
		}))...)
	var wg sync.WaitGroup
	wg.Go(func() { // which Goexit may end
		defer func() {
			if seen := recover(); seen != nil && seen != "inner" {
				panic(seen)
			}
		}()
		stream, err := conn.NewStream(context.Background(), bidiStream, get)
		if err != nil {
			t.Error(err)
			return
		}
		_ = stream.SendMsg(wrapperspb.String("x")) // unless the panic came before
		_ = stream.CloseSend()
		_, _ = receive(stream)
	})
	wg.Wait()
	time.Sleep(time.Hour)
}
