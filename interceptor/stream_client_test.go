// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

type closeCounter struct {
	grpc.ClientStream

	n *int
}

func (c *closeCounter) CloseSend() error {
	*c.n++
	return c.ClientStream.CloseSend()
}

// gRPC's generated code has it that the one request of a server stream is never the place to say that the
// stream is over; that of other streams is told to ask RecvMsg.
func TestStreamSend_Over(t *testing.T) {
	for want, desc := range map[error]*grpc.StreamDesc{nil: serverStream, io.EOF: bidiStream} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, faults.Play().Then(down()))
				stream := s.open(t, t.Context(), desc)
				if _, err := receive(stream); status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
					t.Fatal(err)
				}
				if err := stream.SendMsg(wrapperspb.String("a")); err != want {
					t.Errorf("%v; want %v", err, want)
				}
			})
		})
	}
}

// racer prepares every message while sending it, and sends some in another goroutine.
type racer struct {
	grpc.ClientStream

	wg    sync.WaitGroup
	count int
}

func (r *racer) SendMsg(m any) error {
	r.wg.Wait() // gRPC allows one SendMsg at a time
	for range 4 {
		r.wg.Go(func() { _ = new(grpc.PreparedMsg).Encode(r.ClientStream, m) })
	}
	r.count++
	if r.count%2 == 0 {
		return r.ClientStream.SendMsg(m)
	}
	r.wg.Go(func() { _ = r.ClientStream.SendMsg(m) })
	return nil
}

func (r *racer) CloseSend() error {
	r.wg.Wait()
	return r.ClientStream.CloseSend()
}

// In real time, because it tests race conditions.
func TestStreamSend_InnerGoroutines(t *testing.T) {
	t.Parallel()
	retry := plain()
	retry.Backoff = backoff.Config{Initial: time.Microsecond, Max: time.Microsecond, Multiplier: 1}
	s := scene{Server: testserver.Start(t, testserver.Keep(4)), retrier: mustNew(t, mustSet(t, config(retry)), quiet)}
	const n = 500
	for range 5 {
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &racer{ClientStream: stream}
		})
		s.On(get, faults.Play(faults.Receive(0)).Then(down()), faults.Play(faults.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream)
		for i := range n {
			send(t, stream, fmt.Sprint(i))
		}
		_ = stream.CloseSend()
		got, err := receive(stream)
		for i, text := range got {
			if text != fmt.Sprint(i) {
				t.Fatalf("message %d is %s", i, text)
			}
		}
		if len(got) != n || err != io.EOF {
			t.Fatalf("%d messages of %d, %v", len(got), n, err)
		}
	}
}

func TestStreamSend_Prepared(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(1), faults.Play(faults.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream, grpc.UseCompressor(gzip.Name))
		send(t, stream, "a")
		time.Sleep(time.Second)
		send(t, stream, "b") // the second attempt
		p := new(grpc.PreparedMsg)
		testkit.NoError(t, p.Encode(stream, wrapperspb.String("prepared")))
		for range 2 {
			testkit.NoError(t, stream.SendMsg(p))
		}
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[a b prepared prepared]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestStreamSend_NotEncodable(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(0)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a")
		err := stream.SendMsg(&note{"no protobuf"})
		if err == nil || !strings.Contains(err.Error(), "error while marshaling") {
			t.Errorf("SendMsg: %v", err)
		}
		if again := stream.RecvMsg(new(wrapperspb.StringValue)); again != err {
			t.Errorf("RecvMsg: %v; want the error of SendMsg", again)
		}
	})
}

// echoes says whether n messages that one goroutine sends come back to another.
func (s scene) echoes(t *testing.T, n int) bool {
	t.Helper()
	stream := s.open(t, t.Context(), bidiStream, interceptor.Idempotent())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if err := stream.SendMsg(wrapperspb.String(fmt.Sprint(i))); err != nil {
				t.Errorf("SendMsg: %v", err)
			}
		}
		_ = stream.CloseSend()
	})
	got, err := receive(stream)
	wg.Wait()
	for i, text := range got {
		if text != fmt.Sprint(i) {
			t.Fatalf("got %v", got)
		}
	}
	return len(got) == n && err == io.EOF
}

// spy is a stream that runs a function before each message is sent.
type spy struct {
	grpc.ClientStream

	send func(m any)
}

func (s *spy) SendMsg(m any) error {
	s.send(m)
	return s.ClientStream.SendMsg(m)
}

func TestStreamSend_MessageItself(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var seen []any
		conn := s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n > 1 {
				return stream
			}
			return &spy{stream, func(m any) { seen = append(seen, m) }}
		})
		s.On(get, down(), faults.Play(faults.Receive(1), say("a")))
		stream := testkit.Must(conn.NewStream(t.Context(), serverStream, get))(t)
		m := wrapperspb.String("x")
		testkit.NoError(t, stream.SendMsg(m))
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || len(seen) != 1 || seen[0] != m {
			t.Errorf("%v, %v; seen %v", got, err, seen)
		}
	})
}

type signer struct{ grpc.ClientStream }

func (s *signer) SendMsg(m any) error {
	text, ok := m.(*wrapperspb.StringValue)
	if !ok {
		return s.ClientStream.SendMsg(m)
	}
	return s.ClientStream.SendMsg(wrapperspb.String(text.GetValue() + ", signed"))
}

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

func (q queuer) CloseSend() error { close(q.queue); return nil }

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
func TestStreamSend_InnerInterceptors(t *testing.T) {
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
				s.On(get, faults.Play(faults.Receive(0)).Then(down()), faults.Play(faults.Echo(0)))
				stream := s.open(t, t.Context(), bidiStream)
				m := wrapperspb.String("a")
				testkit.NoError(t, stream.SendMsg(m))
				synctest.Wait()
				m.Value = "b" // the application uses its message again
				testkit.NoError(t, stream.SendMsg(m))
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

func TestStreamSend_PrepareBeside(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(0), say("sum")))
		stream := s.open(t, t.Context(), clientStream)
		done := make(chan error)
		go func() { // gRPC lets messages be prepared in any goroutine
			var err error
			for range 100 {
				if e := new(grpc.PreparedMsg).Encode(stream, wrapperspb.String("prepared")); e != nil {
					err = e
				}
			}
			done <- err
		}()
		for range 100 {
			send(t, stream, "x")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = stream.CloseSend()
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := len(s.heard(0)); got != 100 {
			t.Errorf("the server heard %d messages", got)
		}
	})
}

func TestStreamSend_TooLarge(t *testing.T) {
	retry := plain()
	retry.RetryableStatusCodes = []codes.Code{codes.ResourceExhausted, codes.Unavailable}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(0)))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxCallSendMsgSize(100))
		send(t, stream, "small")
		synctest.Wait()
		err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", 100)))
		if status.Code(err) != codes.ResourceExhausted || reasonOf(err) != policy.ReasonNonRetryable {
			t.Errorf("%v, %s", err, reasonOf(err))
		}
		synctest.Wait()
		if got := s.heard(0); s.Count(get) != 1 || fmt.Sprint(got) != "[small]" || s.retrier.Replayed() != 0 {
			t.Errorf("%d attempts, the first heard %v; %d bytes are kept", s.Count(get), got, s.retrier.Replayed())
		}
	})
}

// A stream that only sends never gets an answer, and would keep its messages forever.
func TestStreamSend_OnlySends(t *testing.T) {
	const limit = 1000
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(0)))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(limit))
		most := int64(0)
		for range 1000 {
			send(t, stream, "message")
			most = max(most, s.retrier.Replayed())
		}
		if most < limit/2 || most > limit || s.retrier.Replayed() != 0 {
			t.Errorf("%d bytes were kept and %d are; want up to %d and then none", most, s.retrier.Replayed(), limit)
		}
	})
}

// stamping is an inner interceptor that changes messages in place, as one that validates, encrypts or signs may.
type stamping struct {
	grpc.ClientStream

	seen *[]string
}

func (s stamping) SendMsg(v any) error {
	text, ok := v.(*wrapperspb.StringValue)
	if !ok {
		return fmt.Errorf("it gets a %T", v)
	}
	text.Value += "+"
	*s.seen = append(*s.seen, text.GetValue())
	return s.ClientStream.SendMsg(v)
}

// Changes by an inner interceptor don't affect replays: each attempt sends the application's message.
func TestStreamSend_MutatingInterceptor(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		var seen []string
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return stamping{stream, &seen} })
		s.On(get, faults.Play(faults.Receive(0)).Then(down()).Times(2), faults.Play(faults.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "a", "b")
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a+ b+]" || err != io.EOF || fmt.Sprint(seen) != "[a+ b+ a+ b+ a+ b+]" {
			t.Errorf("%v, %v; the interceptors saw %v", got, err, seen)
		}
	})
}

// A send that flow control blocks keeps neither RecvMsg nor the end of the call waiting, whether the call is committed or not.
func TestStreamSend_Blocked(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]testserver.Step{
		"committed":   faults.Play(faults.Pause(time.Second), say("a"), faults.Pause(time.Hour)),
		"uncommitted": faults.Play(faults.Pause(time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.Server = testserver.Start(t, testserver.ServerOptions(grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(1<<20)))
				s.conn = s.Dial(t, s.retrier.DialOptions()...)
				s.On(get, step)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream, start := s.open(t, ctx, bidiStream), time.Now()
				time.AfterFunc(2*time.Second, cancel)
				sent := make(chan error)
				go func() {
					var err error
					for err == nil {
						err = stream.SendMsg(wrapperspb.String(strings.Repeat("x", 20<<10)))
					}
					sent <- err
				}()
				if err := stream.RecvMsg(new(wrapperspb.StringValue)); (err == nil) != (time.Since(start) == time.Second) {
					t.Errorf("RecvMsg returned %v after %v", err, time.Since(start))
				}
				if err := <-sent; err != io.EOF || time.Since(start) != 2*time.Second {
					t.Errorf("SendMsg returned %v after %v; want io.EOF when the call is cancelled", err, time.Since(start))
				}
				if _, err := receive(stream); status.Code(err) != codes.Canceled || time.Since(start) != 2*time.Second {
					t.Errorf("RecvMsg returned %v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// failsLater is a stream whose second SendMsg fails by itself, and whose RecvMsg returns its message only after that.
type failsLater struct {
	grpc.ClientStream

	sent   int
	failed chan struct{}
}

func (f *failsLater) SendMsg(m any) error {
	f.sent++
	if f.sent == 1 {
		return f.ClientStream.SendMsg(m)
	}
	close(f.failed)
	return status.Error(codes.DataLoss, "by an interceptor")
}

func (f *failsLater) RecvMsg(m any) error {
	err := f.ClientStream.RecvMsg(m)
	<-f.failed
	return err
}

// A message that has come when SendMsg fails by itself is the application's; the failure follows it.
func TestStreamSend_FailsAsAMessageComes(t *testing.T) {
	for name, c := range map[string]spec.Config{"retried": config(plain()), "receiving on": config(plain()), "single": {}} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream {
					return &failsLater{ClientStream: stream, failed: make(chan struct{})}
				})
				s.On(get, faults.Play(faults.Receive(1), say("first", "second"), faults.Pause(time.Hour)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var finished []codes.Code
				stream := s.open(t, ctx, bidiStream, grpc.OnFinish(func(err error) { finished = append(finished, status.Code(err)) }))
				send(t, stream, "x")
				time.AfterFunc(time.Second, func() { _ = stream.SendMsg(wrapperspb.String("y")) })
				m := new(wrapperspb.StringValue)
				if err := stream.RecvMsg(m); err != nil || m.GetValue() != "first" {
					t.Errorf("%q, %v; want the first message", m.GetValue(), err)
				}
				if name == "single" {
					return // gRPC's own stream goes on: only the interceptor has failed
				}
				if name == "retried" {
					synctest.Wait()
				}
				_, err := receive(stream)
				_, again := receive(stream)
				synctest.Wait() // OnFinish runs in the goroutine of SendMsg
				if fmt.Sprint(status.Code(err), status.Code(again), finished) != "DataLoss DataLoss [DataLoss]" {
					t.Errorf("%v, then %v, and OnFinish was told %v; want the error of SendMsg", err, again, finished)
				}
			})
		})
	}
}

// deaf is a stream whose second SendMsg returns only when its context is over, and says so.
type deaf struct {
	grpc.ClientStream

	ctx  context.Context
	sent int
}

func (d *deaf) SendMsg(m any) error {
	d.sent++
	if d.sent == 1 {
		return d.ClientStream.SendMsg(m)
	}
	<-d.ctx.Done()
	return status.FromContextError(d.ctx.Err()).Err()
}

// A message that can't be kept is sent to the next attempt if the one that was to take it has ended, whatever an inner interceptor returns.
func TestStreamSend_UnkeptAndEnded(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s = s.within(t, func(ctx context.Context, n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return &deaf{ClientStream: stream, ctx: ctx}
			}
			return stream
		})
		s.On(get, faults.Play(faults.Receive(1), faults.Pause(time.Second)).Then(down()), faults.Play(faults.Echo(0)))
		stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(20))
		send(t, stream, "x")
		var got []string
		var err error
		received := make(chan struct{})
		go func() { defer close(received); got, err = receive(stream) }()
		synctest.Wait()
		send(t, stream, "longer than what may be kept")
		_ = stream.CloseSend()
		<-received
		if fmt.Sprint(got) != "[x longer than what may be kept]" || err != io.EOF {
			t.Errorf("the server echoes %v, %v", got, err)
		}
	})
}

// refusesSecond is a stream whose second SendMsg fails by itself.
type refusesSecond struct {
	grpc.ClientStream

	sent int
}

func (r *refusesSecond) SendMsg(m any) error {
	r.sent++
	if r.sent == 1 {
		return r.ClientStream.SendMsg(m)
	}
	return status.Error(codes.DataLoss, "by an interceptor")
}

// A message that an inner interceptor refuses ends the call, also while RecvMsg waits for the first message of an attempt that the call is
// committed to.
func TestStreamSend_RefusedWhileReceiving(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(fmt.Sprint(committed), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return &refusesSecond{ClientStream: stream} })
				s.On(get, faults.Play(faults.Receive(1), faults.Pause(time.Minute)))
				stream, begun := s.open(t, t.Context(), bidiStream), time.Now()
				send(t, stream, "x")
				if committed {
					_ = stream.Context()
				}
				received := make(chan error)
				go func() { received <- stream.RecvMsg(new(wrapperspb.StringValue)) }()
				synctest.Wait()
				err, end := stream.SendMsg(wrapperspb.String("y")), <-received
				if status.Code(err) != codes.DataLoss || status.Code(end) != codes.DataLoss || time.Since(begun) > 0 {
					t.Errorf("SendMsg returns %v, RecvMsg %v, after %v", err, end, time.Since(begun))
				}
			})
		})
	}
}

// paced is a stream whose SendMsg takes a while.
type paced struct{ grpc.ClientStream }

func (p paced) SendMsg(m any) error {
	time.Sleep(10 * ms)
	return p.ClientStream.SendMsg(m)
}

// An application that only sends: an attempt that ends while it is sent what was kept is followed by the next one.
func TestStreamSend_EndsInTheReplay(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return paced{stream} })
		s.On(get, faults.Play(faults.Receive(3)).Then(down()), down(), faults.Play(faults.Receive(0), say("a")))
		stream := s.open(t, t.Context(), clientStream)
		for range 30 {
			send(t, stream, "x")
			time.Sleep(100 * ms)
		}
		if n := s.Count(get); n != 3 {
			t.Errorf("%d attempts", n)
		}
		_ = stream.CloseSend()
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" {
			t.Error(got, err)
		}
	})
}

// RecvMsg is gRPC's, until the context is over.
func (d *deaf) RecvMsg(m any) error {
	err := d.ClientStream.RecvMsg(m)
	if err != nil && d.ctx.Err() != nil {
		return status.FromContextError(d.ctx.Err()).Err()
	}
	return err
}

func TestStreamResend_Grows(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(faults.Receive(1)).Then(down()),
			faults.Play(faults.Receive(2)).Then(down()),
			faults.Play(faults.Receive(3)).Then(down()),
			faults.Play(faults.Receive(0), say("a", "b", "c", "d")))
		stream := s.open(t, t.Context(), bidiStream)
		for _, text := range []string{"a", "b", "c", "d"} {
			send(t, stream, text)
			time.Sleep(time.Second)
		}
		_ = stream.CloseSend()
		got, err := receive(stream)
		if fmt.Sprint(got) != "[a b c d]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		if got := fmt.Sprint(s.heardBy()); got != "[[a] [a b] [a b c] [a b c d].]" {
			t.Errorf("the attempts heard %s", got)
		}
		if s.waits() != "[1.1s 1.2s 1.4s]" { // each failure is found when the next message is sent, which waits for the backoff
			t.Errorf("waits %s", s.waits())
		}
	})
}

func TestStreamResend_Close(t *testing.T) {
	closed := 0
	counting := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return &closeCounter{stream, &closed}, err
	}
	play(t, config(plain()), func(t *testing.T, s scene) {
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(counting))...)
		s.On(get,
			faults.Play(faults.Receive(0)).Then(down()),
			faults.Play(faults.Receive(1), faults.Pause(time.Second)).Then(down()), // fails once all is sent again
			faults.Play(faults.Receive(0), say("sum")))
		stream := testkit.Must(conn.NewStream(t.Context(), clientStream, get))(t)
		send(t, stream, "a", "b")
		_ = stream.CloseSend()
		testkit.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		all := s.heardBy()
		if all[0] != "[a b]." || all[2] != "[a b]." || closed != 3 {
			t.Errorf("the attempts heard %s, with %d closes; want one for each of 3 attempts", all, closed)
		}
	})
}

// TestStreamResend_ReceiveBeside is for the race detector: in real time, two goroutines
// find out about the same failures.
func TestStreamResend_ReceiveBeside(t *testing.T) {
	t.Parallel()
	retry := plain()
	retry.Backoff = backoff.Config{Initial: time.Microsecond, Max: time.Millisecond, Multiplier: 2}
	r := mustNew(t, mustSet(t, config(retry)), quiet)
	s := scene{Server: testserver.Start(t, testserver.Keep(4)), retrier: r}
	s.conn = s.Dial(t, r.DialOptions()...)
	failed, streams := 0, 75
	for i := range streams {
		n := 5 + i%20
		s.On(get,
			faults.Play(faults.Receive(1+i%n)).Then(down()),
			faults.Play().Then(down()),
			faults.Play(faults.Receive(1+i%3)).Then(down()),
			faults.Play(faults.Echo(0)))
		if !s.echoes(t, n) {
			failed++
		}
	}
	if failed > 0 || r.Replayed() != 0 {
		t.Errorf("%d streams of %d were not answered in full; %d bytes kept", failed, streams, r.Replayed())
	}
}

// A RecvMsg that waits for a message which the server sends only after the application has sent more keeps no other call of the application
// waiting, whatever RecvMsg's first step comes before. `make random` meets the moments: there the lock has random delays.
func TestStreamProgress_BesideRecvMsg(t *testing.T) {
	failsFirst := []testserver.Step{faults.Play(faults.Receive(1)).Then(down()), faults.Play(faults.Receive(3), say("ok"))}
	for name, row := range map[string]struct {
		server  []testserver.Step
		prepare func(t *testing.T, stream grpc.ClientStream)
		call    func(stream grpc.ClientStream)
		opts    []grpc.CallOption
	}{
		"SendMsg finds the end of an attempt": {
			server:  failsFirst,
			prepare: func(t *testing.T, stream grpc.ClientStream) { t.Helper(); send(t, stream, "a") },
			call: func(stream grpc.ClientStream) {
				_ = stream.SendMsg(wrapperspb.String("b"))
				_ = stream.SendMsg(wrapperspb.String("c"))
			},
		},
		"a message that can't be kept waits for an attempt": {
			server: failsFirst,
			prepare: func(t *testing.T, stream grpc.ClientStream) {
				t.Helper()
				send(t, stream, "a")
				synctest.Wait()
				send(t, stream, "b") // finds the end: a goroutine of ours waits for the backoff
			},
			call: func(stream grpc.ClientStream) { _ = stream.SendMsg(wrapperspb.String(strings.Repeat("x", 200))) },
			opts: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(100)},
		},
		"Header of a committed stream": {
			server:  []testserver.Step{faults.Play(faults.SendHeader(nil), faults.Receive(1), say("ok"))},
			prepare: func(_ *testing.T, stream grpc.ClientStream) { stream.Context() },
			call: func(stream grpc.ClientStream) {
				_, _ = stream.Header()
				_ = stream.SendMsg(wrapperspb.String("b"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				for round := range 50 {
					s.Reset()
					s.On(get, row.server...)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					stream := s.open(t, ctx, bidiStream, row.opts...)
					row.prepare(t, stream)
					synctest.Wait()
					start := time.Now()
					var calls sync.WaitGroup
					calls.Go(func() { row.call(stream); _ = stream.CloseSend() })
					var got []string
					var err error
					calls.Go(func() { got, err = receive(stream) })
					calls.Wait()
					cancel()
					if took := time.Since(start); fmt.Sprint(got) != "[ok]" || err != io.EOF || took > time.Second {
						t.Fatalf("round %d: %v, %v after %v", round, got, err, took)
					}
				}
			})
		})
	}
}

// The server answers when it has all messages, at times after attempts that fail. Whatever the application does beside sending, in whatever order,
// the call ends soon, once, and nothing is held.
func TestStreamProgress_AnyOrder(t *testing.T) {
	for name, c := range map[string]spec.Config{"retried": config(plain()), "replaced": config(hasty())} {
		for _, hides := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, options hidden %v", name, hides), func(t *testing.T) {
				f, p := &fuse{limit: 1 << 30}, &purse{grants: 1 << 30}
				paid(c)
				play(t, c, func(t *testing.T, s scene) {
					s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
						func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
							if hides {
								opts = nil
							}
							return open(ctx, desc, cc, method, opts...)
						}))...)
					for round := range 40 {
						what := s.progress(t)
						time.Sleep(2 * time.Second)
						if left := held(s.retrier, f, p); left != "" || s.retrier.Replayed() != 0 {
							what += fmt.Sprintf(" held: %s, %d bytes", left, s.retrier.Replayed())
						}
						if what != "" {
							t.Fatalf("round %d: %s", round, what)
						}
					}
				}, withFuse(f), interceptor.WithBudget("", forAll(p)))
			})
		}
	}
}

// progress plays a random stream, and returns what is wrong with it, or "".
func (s scene) progress(t *testing.T) string {
	t.Helper()
	some := func(n int) time.Duration { return time.Duration(rand.IntN(n)) * ms }
	s.Reset()
	var steps []testserver.Step
	for range rand.IntN(3) {
		steps = append(steps, faults.Play(faults.Receive(rand.IntN(4)), faults.Pause(some(5))).Then(down()))
	}
	steps = append(steps, faults.Play(faults.Receive(5), faults.SendHeader(nil), faults.Pause(some(3)), say("ok"), faults.Receive(0)))
	s.On(get, steps...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	finished, padding := 0, ""
	opts := []grpc.CallOption{grpc.OnFinish(func(error) { finished++ })}
	if rand.IntN(2) == 0 {
		opts = append(opts, grpc.MaxRetryRPCBufferSize(150))
		padding = strings.Repeat("x", rand.IntN(2)*90)
	}
	stream := s.open(t, ctx, bidiStream, opts...)
	start := time.Now()
	var calls sync.WaitGroup
	beside := func(call func()) {
		after := some(3) * 20
		calls.Go(func() { time.Sleep(after); call() })
	}
	pauses := []time.Duration{some(60), 0, some(60), some(60), 0}
	calls.Go(func() {
		for i, pause := range pauses {
			if err := stream.SendMsg(wrapperspb.String(fmt.Sprint(i, padding))); err != nil {
				return
			}
			time.Sleep(pause)
		}
		_ = stream.CloseSend()
	})
	var got []string
	var err error
	beside(func() { got, err = receive(stream) })
	if rand.IntN(2) == 0 {
		beside(func() { _, _ = stream.Header() })
	}
	if rand.IntN(4) == 0 {
		beside(func() { stream.Context() })
	}
	calls.Wait()
	took := time.Since(start)
	done := fmt.Sprint(got) == "[ok]" && err == io.EOF || reasonOf(err) == "committed"
	if !done || took > 10*time.Second || finished != 1 {
		return fmt.Sprintf("%v, %v after %v, OnFinish %d times", got, err, took, finished)
	}
	return ""
}
