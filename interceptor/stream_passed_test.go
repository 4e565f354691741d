// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// unheard runs a test with a Retrier that has no policy for the methods, and to which nobody listens: no observer, no gate.
func unheard(t *testing.T, c spec.Config, test func(t *testing.T, s scene)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), retrier: mustNew(t, mustSet(t, c))}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s)
	})
}

// A stream of a method without a policy, to which nobody listens, has the caller's own options and no context of ours: gRPC's OnFinish,
// header, trailer and peer go to the caller, with nothing in between.
func TestStreamPassed_CallersOptions(t *testing.T) {
	unheard(t, spec.Config{}, func(t *testing.T, s scene) {
		type key struct{}
		s.On(get, text("a").Header(metadata.Pairs("who", "h")).Trailer(metadata.Pairs("who", "t")))
		var seen []string
		var inner context.Context
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				inner = ctx
				for _, o := range opts {
					seen = append(seen, fmt.Sprintf("%T", o))
				}
				return open(ctx, desc, cc, method, opts...)
			}))...)
		var header, trailer metadata.MD
		var from peer.Peer
		var finished []error
		ctx := context.WithValue(t.Context(), key{}, true)
		stream := s.open(t, ctx, serverStream, grpc.WaitForReady(true), grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
			grpc.OnFinish(func(err error) { finished = append(finished, err) }))
		send(t, stream, "x")
		got, err := receive(stream)
		all := fmt.Sprint(got, header["who"], trailer["who"], stream.Trailer()["who"], from.Addr != nil, finished)
		if all != "[a] [h] [t] [t] true [<nil>]" || err != io.EOF {
			t.Errorf("%s, %v", all, err)
		}
		want := "[interceptor.insideOption grpc.FailFastCallOption grpc.HeaderCallOption grpc.TrailerCallOption grpc.PeerCallOption grpc.OnFinishCallOption]"
		if fmt.Sprint(seen) != want {
			t.Errorf("gRPC gets the options %s; want %s", seen, want)
		}
		if inner != ctx {
			t.Error("the stream has another context")
		}
	})
}

// An observer that handles no event of calls costs a call nothing: its stream is gRPC's own, and a unary call doesn't ask for its peer.
func TestStreamPassed_ObserverOfOtherEvents(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		observer interceptor.Observer
		passed   bool
	}{
		"other events": {interceptor.Observer{
			Diagnostic: func(policy.Diagnostic) {},
			Reload:     func(*policy.Set, []string, error) {},
			ModeChange: func(_, _ interceptor.ModeSwitch) {},
		}, true},
		"one event of calls": {interceptor.Observer{Sent: func(context.Context, interceptor.Event) {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, mustSet(t, spec.Config{}), interceptor.WithObserver(row.observer))
				var seen []string
				note := func(opts []grpc.CallOption) {
					for _, o := range opts {
						seen = append(seen, fmt.Sprintf("%T", o))
					}
				}
				conn := testserver.Start(t).Dial(t, append(r.DialOptions(),
					grpc.WithChainUnaryInterceptor(func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						note(opts)
						return nil
					}),
					grpc.WithChainStreamInterceptor(func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
						note(opts)
						return nil, status.Error(codes.Unavailable, "")
					}))...)
				_, _ = conn.NewStream(t.Context(), serverStream, get)
				if got := fmt.Sprint(seen); row.passed != (got == "[interceptor.insideOption]") {
					t.Errorf("gRPC gets the options %s for a stream", got)
				}
				seen = nil
				_ = conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue))
				if got := fmt.Sprint(seen); row.passed == slices.Contains(seen, "grpc.PeerCallOption") {
					t.Errorf("gRPC gets the options %s for a unary call", got)
				}
			})
		})
	}
}

// details are the code of an error, its reason and its attempts.
func details(err error) string {
	e, _ := errors.AsType[*interceptor.Error](err)
	if e == nil {
		return fmt.Sprint(status.Code(err), " without details")
	}
	return fmt.Sprint(status.Code(err), " ", e.Reason, " ", e.Attempts)
}

// Whatever ends such a stream, NewStream and RecvMsg say why it was not retried, as for every other call.
func TestStreamPassed_Errors(t *testing.T) {
	off := spec.Config{Mode: "OFF"}
	for name, row := range map[string]struct {
		config spec.Config
		step   testserver.Step
		act    func(s scene, cancel context.CancelFunc)
		want   string
	}{
		"a server's error": {step: down(), want: "Unavailable non_retryable 1"},
		"mode OFF":         {config: off, step: down(), want: "Unavailable non_retryable 1"},
		"cancelled":        {step: testserver.Hang(), act: func(_ scene, cancel context.CancelFunc) { cancel() }, want: "Canceled cancelled 1"},
		"closed":           {step: testserver.Hang(), act: func(s scene, _ context.CancelFunc) { _ = s.conn.Close() }, want: "Canceled closed 1"},
		"deadline": {
			step: testserver.Hang(), act: func(scene, context.CancelFunc) { time.Sleep(time.Minute) },
			want: "DeadlineExceeded deadline_exceeded 1",
		},
	} {
		for kind, desc := range kinds() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				unheard(t, row.config, func(t *testing.T, s scene) {
					s.On(get, row.step)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					stream := s.open(t, ctx, desc)
					send(t, stream, "x")
					synctest.Wait()
					if row.act != nil {
						row.act(s, cancel)
						synctest.Wait()
					}
					err := stream.RecvMsg(new(wrapperspb.StringValue))
					again := stream.RecvMsg(new(wrapperspb.StringValue))
					if got := details(err); got != row.want || details(again) != got {
						t.Errorf("%s, then %s; want %s", got, details(again), row.want)
					}
				})
			})
		}
	}
	t.Run("not opened", func(t *testing.T) {
		unheard(t, spec.Config{}, func(t *testing.T, s scene) {
			s.leave()
			stream, err := s.conn.NewStream(t.Context(), serverStream, get)
			if stream != nil || status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonNonRetryable {
				t.Errorf("%v, %v (%s)", stream, err, reasonOf(err))
			}
		})
	})
}
