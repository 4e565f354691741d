// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// doubler sends every message twice.
type doubler struct{ grpc.ClientStream }

func (d doubler) SendMsg(m any) error {
	if err := d.ClientStream.SendMsg(m); err != nil {
		return err
	}
	return d.ClientStream.SendMsg(m)
}

// swallower lets nothing through.
type swallower struct{ grpc.ClientStream }

func (swallower) SendMsg(any) error { return nil }

// queuer sends in a goroutine of its own.
type queuer struct {
	grpc.ClientStream

	queue chan any
}

func queued(stream grpc.ClientStream) grpc.ClientStream {
	q := queuer{stream, make(chan any, 10)}
	go func() {
		for m := range q.queue {
			_ = stream.SendMsg(m)
		}
		_ = stream.CloseSend()
	}()
	return q
}

func (q queuer) SendMsg(m any) error { q.queue <- m; return nil }
func (q queuer) CloseSend() error    { close(q.queue); return nil }

// preparer prepares every message, in a goroutine of its own and with another one before it.
type preparer struct{ grpc.ClientStream }

func (p preparer) SendMsg(m any) error {
	prepared := make(chan error)
	go func() {
		other := new(grpc.PreparedMsg)
		_ = other.Encode(p.ClientStream, wrapperspb.String("another"))
		prepared <- other.Encode(p.ClientStream, m)
	}()
	if err := <-prepared; err != nil {
		return err
	}
	return p.ClientStream.SendMsg(m)
}

// Whatever an interceptor does with the messages of the first attempt, those that follow are sent what the
// application sent, once.
func TestWhatIsReplayedIsWhatTheApplicationSentWhateverIsDoneFurtherIn(t *testing.T) {
	same := func(stream grpc.ClientStream) grpc.ClientStream { return stream }
	for name, row := range map[string]struct {
		first func(stream grpc.ClientStream) grpc.ClientStream
		heard string // by the first attempt
	}{
		"passed on": {same, "[a b]"},
		"doubled":   {func(s grpc.ClientStream) grpc.ClientStream { return doubler{s} }, "[a a b b]"},
		"replaced":  {func(s grpc.ClientStream) grpc.ClientStream { return &signer{s} }, "[a, signed b, signed]"},
		"swallowed": {func(s grpc.ClientStream) grpc.ClientStream { return swallower{s} }, "[]"},
		"queued":    {queued, "[a b]"},
		"prepared":  {func(s grpc.ClientStream) grpc.ClientStream { return preparer{s} }, "[a b]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
					if n == 1 {
						return row.first(stream)
					}
					return stream
				})
				s.On(get, testserver.Play(testserver.ReceiveAll()).Then(down()), testserver.Play(testserver.EchoAll()))
				stream := s.open(t, t.Context(), bidiStream)
				m := wrapperspb.String("a")
				if err := stream.SendMsg(m); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				m.Value = "b" // the application uses its message again
				if err := stream.SendMsg(m); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				m.Value = "c"
				_ = stream.CloseSend()
				got, err := receive(stream)
				if fmt.Sprint(got) != "[a b]" || err != io.EOF || fmt.Sprint(s.heard(0)) != row.heard {
					t.Errorf("%v, %v; the first attempt heard %v, want %s", got, err, s.heard(0), row.heard)
				}
			})
		})
	}
}

// A message may still be on its way to an attempt that has another one in its place.
func TestAMessageThatIsOvertakenIsSentOnce(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &spy{stream, func(any) { time.Sleep(10 * time.Second) }}
		})
		s.On(get, testserver.Play(testserver.Pause(time.Second)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream)
		go func() {
			start := time.Now()
			send(t, stream, "a")
			if time.Since(start) != 10*time.Second {
				t.Errorf("the message was sent after %v; want 10s", time.Since(start))
			}
			send(t, stream, "b")
			_ = stream.CloseSend()
		}()
		if got, err := receive(stream); fmt.Sprint(got) != "[a b]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := s.heard(0); s.Count(get) != 2 || len(got) != 0 {
			t.Errorf("%d attempts, the first heard %v", s.Count(get), got)
		}
	})
}
