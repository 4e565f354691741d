// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// slowSends is a network that takes its time for each message.
func slowSends(each time.Duration) grpc.StreamClientInterceptor {
	return func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := next(ctx, d, cc, method, opts...)
		return slowSender{s, each}, err
	}
}

type slowSender struct {
	grpc.ClientStream

	each time.Duration
}

func (s slowSender) SendMsg(m any) error {
	time.Sleep(s.each)
	return s.ClientStream.SendMsg(m)
}

// Most of a stream's time is spent by the application or the network, not by the server: no call is refused for it, and
// failed calls are retried, even after the server has reported overload.
func TestAdmission_TimeOfStreams(t *testing.T) {
	t.Parallel()
	send := func(t *testing.T, s grpc.ClientStream, n int, pause time.Duration) {
		for range n {
			time.Sleep(pause)
			if err := s.SendMsg(wrapperspb.String("")); err != nil {
				t.Error(err)
			}
		}
		if err := s.CloseSend(); err != nil {
			t.Error(err)
		}
	}
	upload, download := &grpc.StreamDesc{ClientStreams: true}, &grpc.StreamDesc{ServerStreams: true}
	kinds := map[string]struct {
		desc  *grpc.StreamDesc
		sends time.Duration // time of the network for each message
		use   func(*testing.T, grpc.ClientStream) error
	}{
		"upload, with pauses": {upload, 0, func(t *testing.T, s grpc.ClientStream) error {
			send(t, s, 4, 175*ms)
			return receive(s)
		}},
		"upload, slow network": {upload, 175 * ms, func(t *testing.T, s grpc.ClientStream) error {
			send(t, s, 4, 0)
			return receive(s)
		}},
		"read late": {download, 0, func(t *testing.T, s grpc.ClientStream) error {
			send(t, s, 1, 0)
			time.Sleep(700 * ms)
			return receive(s)
		}},
	}
	policies := map[string]string{"one attempt": once, "retried": timeouts}
	for name, kind := range kinds {
		for which, settings := range policies {
			t.Run(name+"/"+which, func(t *testing.T) {
				play(t, admitting(settings), func(t *testing.T, s scene) {
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(slowSends(kind.sends)))...)
					use := func() error {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						stream, err := conn.NewStream(ctx, kind.desc, get)
						if err != nil {
							return err
						}
						return kind.use(t, stream)
					}
					s.On(get, testserver.Fail(codes.ResourceExhausted, "full"))
					_, _ = s.call(t.Context()) // from here on, slow answers alone would refuse calls
					s.On(get, text("fast").Delay(20*ms))
					_, _ = s.call(t.Context()) // the fastest answer ever
					s.On(get, faults.Play(faults.Receive(0), faults.Pause(20*ms), say("in time")))
					var all sync.WaitGroup
					for range 40 {
						all.Go(func() {
							if err := use(); err != nil {
								t.Error(err)
							}
						})
						time.Sleep(100 * ms)
					}
					all.Wait()
					before := s.Count(get)
					if s.On(get, down(), text("retried")); which == "retried" {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						_, err := s.call(ctx)
						if n := s.Count(get) - before; err != nil || n != 2 {
							t.Errorf("%v after %d requests; want a retry", err, n)
						}
					}
				})
			})
		}
	}
}

// The time of a slow reader is not the server's: admission must not refuse other calls for it.
func TestAdmission_SlowReader(t *testing.T) {
	play(t, admitting("idempotency: NONE"), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), say("a"), faults.Pause(time.Hour)))
		stream := s.open(t)
		time.Sleep(time.Minute)
		if got := s.running(t); got != 1 {
			t.Errorf("%d attempts run; want 1", got)
		}
		testkit.NoError(t, receive(stream))
		if got := s.running(t); got != 0 {
			t.Errorf("%d attempts run after the first message; want 0", got)
		}
		for range 20 {
			testkit.NoError(t, receive(s.open(t)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := s.conn.NewStream(ctx, bidi, get); err != nil {
			t.Errorf("a call in time is refused: %v", err)
		}
	})
}

// Header commits the call, and the first message comes later: the time to that is what is measured, and after it nothing is.
func TestAdmission_CommitIsNoMessage(t *testing.T) {
	play(t, admitting(retries), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), faults.SendHeader(nil), faults.Pause(time.Second), say("a"), faults.Pause(time.Hour)))
		stream := s.open(t)
		if _, err := stream.Header(); err != nil || s.running(t) != 1 {
			t.Errorf("%v; %d attempts are measured after the headers; want 1", err, s.running(t))
		}
		if err := receive(stream); err != nil || s.running(t) != 0 {
			t.Errorf("%v; %d attempts are measured after the first message; want 0", err, s.running(t))
		}
		if err := receive(stream); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

var bidi = &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}

// open opens a stream, and sends one message.
func (s scene) open(t *testing.T) grpc.ClientStream {
	t.Helper()
	stream := testkit.Must(s.conn.NewStream(t.Context(), bidi, get))(t)
	testkit.NoError(t, stream.SendMsg(wrapperspb.String("x")))
	return stream
}
