// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// held is what calls have got from their gates and not given back; "" for nothing.
func held(r *interceptor.Retrier, f *fuse, b *purse) string {
	permits := len(b.asked) - b.returned - b.refunded - b.wasted
	if leaves := f.granted - len(f.told); permits != 0 || leaves != 0 || r.State().Waiting != 0 {
		return fmt.Sprintf("%d permits, %d leaves of the breaker, %d places", permits, leaves, r.State().Waiting)
	}
	return ""
}

// paid makes the default budget pay for the attempts that c allows.
func paid(c spec.Config) {
	for i := range c.Methods {
		if m := &c.Methods[i]; m.Hedge != nil {
			m.Hedge.Budget = ""
		} else {
			m.Retry.Budget = ""
		}
	}
}

// panics is a setup in which an attempt or a callback panics.
type panics struct {
	*fuse
	*purse

	culprit string
	reached atomic.Bool
	allowed atomic.Int64
}

func (p *panics) blame(format string, args ...any) {
	if name := fmt.Sprintf(format, args...); name == p.culprit {
		p.reached.Store(true)
		panic(name)
	}
}

func (p *panics) Allow(ctx context.Context, attempt int) (func(error), error) {
	p.blame("leave %d", p.allowed.Add(1))
	done, err := p.fuse.Allow(ctx, attempt)
	return func(err error) { done(err); p.blame("done") }, err
}

func (p *panics) Open(ctx context.Context, attempt int) error {
	p.blame("state")
	return p.fuse.Open(ctx, attempt)
}

func (p *panics) String() string { return fmt.Sprint(p.fuse, ", ", p.purse) }

// panickingBudget is the budget of that setup.
type panickingBudget struct {
	*purse

	world *panics
}

func (b panickingBudget) Observe(now time.Time, e budget.Event) {
	b.purse.Observe(now, e)
	if e == budget.EventAttemptFailed {
		b.world.blame("fail")
	} else {
		b.world.blame("finish")
	}
}

func (b panickingBudget) Allow(now time.Time, c budget.Cause) (ended func(time.Time, budget.End), ok bool) {
	b.world.blame("allow")
	ended, ok = b.purse.Allow(now, c)
	inner := ended
	return func(now time.Time, how budget.End) {
		inner(now, how)
		b.world.blame("%s", map[budget.End]string{budget.EndUnsent: "unsent", budget.EndFailed: "failed", budget.EndHelped: "helped"}[how])
	}, ok
}

func (p *panics) options(watched bool) []interceptor.Option {
	options := []interceptor.Option{
		interceptor.WithBudget("", forAll(panickingBudget{p.purse, p})),
		interceptor.WithObserver(interceptor.Observer{
			Decision:   func(context.Context, interceptor.Event) { p.blame("decisions") },
			CallEnd:    func(context.Context, interceptor.Event) { p.blame("calls") },
			Diagnostic: func(policy.Diagnostic) {},
		}),
	}
	if !watched {
		return options
	}
	return append(options,
		interceptor.WithBreaker(func(string, string) interceptor.Gate { return p }),
		interceptor.WithObserver(interceptor.Observer{Attempt: func(context.Context, interceptor.Event) { p.blame("attempts") }}),
		interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
			p.blame("classifier")
			return interceptor.VerdictByCode
		}))
}

func TestUnaryPanic(t *testing.T) {
	t.Parallel()
	inPlace := besides()
	inPlace.OnAttemptTimeout = "RETRY"
	culprits := []string{
		"attempt 1", "attempt 2", "attempt 1, late", "attempts", "decisions", "calls", "options", "classifier",
		"leave 1", "leave 2", "done", "state", "fail", "allow", "failed", "finish",
	}
	var reached sync.Map
	t.Cleanup(func() {
		for _, culprit := range culprits {
			if _, ok := reached.Load(culprit); !ok {
				t.Errorf("nothing has made panic: %s", culprit)
			}
		}
	})
	for mode, row := range map[string]struct {
		config  spec.Config
		watched bool
		hangs   int64 // the attempt that hangs until it is cancelled
	}{
		"unobserved":        {config(plain()), false, 0},
		"retries":           {config(plain()), true, 0},
		"one attempt":       {spec.Config{}, true, 0},
		"hedges":            {hedged(), true, 0},
		"hedges, one hangs": {hedged(), true, 1},
		"hedges, two hang":  {hedged(), true, 2},
		"beside":            {config(besides()), true, 1},
		"in place":          {config(inPlace), true, 1},
	} {
		paid(row.config)
		for _, culprit := range culprits {
			t.Run(strings.ReplaceAll(mode+"/"+culprit, " ", "_"), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					p := &panics{
						fuse: &fuse{limit: 10}, purse: &purse{grants: 99}, culprit: culprit,
					}
					r := mustNew(t, mustSet(t, row.config), p.options(row.watched)...)
					p.call(t, r, row.hangs)
					if p.reached.Load() {
						reached.Store(culprit, true)
					}
				})
			})
		}
	}
}

// call makes a call, of which the caller is to see the panic, and sees what is left.
func (p *panics) call(t *testing.T, r *interceptor.Retrier, hangs int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var sent, running atomic.Int64
	seen := caught(func() {
		_ = r.Unary()(ctx, get, nil, new(wrapperspb.StringValue), nil,
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				n := sent.Add(1)
				running.Add(1)
				defer running.Add(-1)
				p.blame("attempt %d", n)
				if n == 1 && strings.HasSuffix(p.culprit, "late") {
					time.Sleep(150 * ms)
				}
				p.blame("attempt %d, late", n)
				if n == hangs {
					<-ctx.Done()
					return status.FromContextError(ctx.Err()).Err()
				}
				return status.Error(codes.Unavailable, "")
			}, grpc.OnFinish(func(error) { p.blame("options") }))
	})
	if n := running.Load(); n != 0 {
		t.Errorf("the call is over, and %d attempts run", n)
	}
	time.Sleep(time.Hour) // virtual: nothing is left that could still happen
	if p.reached.Load() != (seen == p.culprit) {
		t.Errorf("the caller sees the panic %v", seen)
	}
	if left := held(r, p.fuse, p.purse); left != "" {
		t.Errorf("after %d attempts, held for ever: %s; %v", sent.Load(), left, p)
	}
}

// A callback panics when it hears of the attempt that has won: the slow one, which has lost, is cancelled all the same.
func TestUnaryPanic_OfAWinner(t *testing.T) {
	t.Parallel()
	for _, culprit := range []string{"done", "helped"} {
		synctest.Test(t, func(t *testing.T) {
			p := &panics{fuse: &fuse{limit: 10}, purse: &purse{grants: 99}, culprit: culprit}
			c := hedged()
			paid(c)
			r := mustNew(t, mustSet(t, c), p.options(true)...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var sent atomic.Int64
			began := time.Now()
			seen := caught(func() {
				_ = r.Unary()(ctx, get, nil, new(wrapperspb.StringValue), nil,
					func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
						if sent.Add(1) > 1 {
							return nil
						}
						<-ctx.Done()
						return status.FromContextError(ctx.Err()).Err()
					})
			})
			if took := time.Since(began); seen != culprit || took != 100*ms {
				t.Errorf("%s: the caller sees the panic %v after %v; want it when the second attempt is answered", culprit, seen, took)
			}
			if left := held(r, p.fuse, p.purse); left != "" {
				t.Errorf("%s: held for ever: %s", culprit, left)
			}
		})
	}
}

// caught runs f and returns what it panics with.
func caught(f func()) (seen any) {
	defer func() { seen = recover() }()
	f()
	return nil
}

// An inner interceptor that ends its goroutine, as a test does that fails in it, ends the caller's.
func TestUnaryPanic_Goexit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &panics{fuse: &fuse{limit: 10}, purse: &purse{grants: 99}}
		c := hedged()
		paid(c)
		r := mustNew(t, mustSet(t, c), p.options(true)...)
		var sent atomic.Int64
		returned := false
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = r.Unary()(t.Context(), get, nil, new(wrapperspb.StringValue), nil,
				func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					if sent.Add(1) == 2 {
						runtime.Goexit()
					}
					<-ctx.Done()
					return ctx.Err()
				})
			returned = true
		})
		wg.Wait()
		if left := held(r, p.fuse, p.purse); returned || sent.Load() != 2 || left != "" {
			t.Errorf("the call has returned: %v, after %d attempts; %s", returned, sent.Load(), left)
		}
	})
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
	configs := map[string]spec.Config{
		"one attempt": {}, "two attempts": config(func() spec.Retry { r := plain(); r.MaxAttempts = 2; return r }()),
		"retries": config(plain()), "in place": config(hasty()), "beside": config(besides()), "hedges": hedged(),
	}
	for mode, c := range configs {
		paid(c)
		for _, method := range []string{"open", "SendMsg", "CloseSend", "Header", "RecvMsg"} {
			for number := 1; number <= 2; number++ {
				for how, goexit := range map[string]bool{"panics": false, "calls Goexit": true} {
					t.Run(fmt.Sprintf("%s/%s of attempt %d %s", mode, method, number, how), func(t *testing.T) {
						f, b := &fuse{limit: 99}, &purse{grants: 99}
						play(t, c, func(t *testing.T, s scene) {
							panickingStream(t, s, method, number, goexit)
							if left := held(s.retrier, f, b); left != "" || s.retrier.Replayed() != 0 {
								t.Errorf("held for ever: %s; %d bytes", left, s.retrier.Replayed())
							}
						}, withFuse(f), interceptor.WithBudget("", forAll(b)), described(t))
					})
				}
			}
		}
	}
}

// lateSender panics when its attempt has ended already.
type lateSender struct{ grpc.ClientStream }

func (lateSender) SendMsg(any) error { time.Sleep(time.Second); panic("inner") }

// The classifier panics while it judges an earlier attempt: after the call's end, observers are told of no attempt.
func TestStreamPanic_WhileAnotherIsJudged(t *testing.T) {
	var judged atomic.Int64
	play(t, hedged(), func(t *testing.T, s scene) {
		s.On(get, down().Delay(150*ms), down().Delay(100*ms), testserver.Hang())
		stream := s.open(t, t.Context(), serverStream)
		seen := caught(func() { send(t, stream, "x"); _, _ = receive(stream) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if seen != "classifier" || len(s.calls) != 1 || len(s.attempts) != 0 {
			t.Errorf("panics with %v; told of %+v and %+v", seen, s.calls, s.attempts)
		}
	}, interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
		if judged.Add(1) > 1 {
			panic("classifier")
		}
		time.Sleep(time.Second)
		return interceptor.VerdictByCode
	}))
}

// failsFirst is an attempt that fails when it is received from. A later one panics when it is sent what was kept.
type failsFirst struct {
	grpc.ClientStream

	later bool
	ctx   context.Context
}

func (f failsFirst) SendMsg(any) error {
	if f.later {
		panic("attempt")
	}
	return nil
}

func (f failsFirst) RecvMsg(any) error {
	if f.later {
		<-f.ctx.Done()
	}
	return status.Error(codes.Unavailable, "")
}

// refusesLater is an attempt that no message can be sent to, unless it is the first one.
type refusesLater struct {
	grpc.ClientStream

	later bool
}

func (r refusesLater) SendMsg(m any) error {
	if r.later {
		return status.Error(codes.Unavailable, "")
	}
	return r.ClientStream.SendMsg(m)
}

// panickingStream makes a stream whose attempt with that number panics in a method, if it comes to that.
func panickingStream(t *testing.T, s scene, method string, number int, goexit bool) {
	t.Helper()
	s.On(get, moves.Play(moves.Receive(1), moves.Pause(1500*ms)).Then(down()),
		moves.Play(moves.SendHeader(nil), moves.Echo(0)), testserver.Hang())
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

// stream makes a stream, of which the application is to see the panic, and sees what is left.
func (p *panics) stream(t *testing.T, s scene, desc *grpc.StreamDesc, opts ...grpc.CallOption) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := caught(func() {
		stream, err := s.conn.NewStream(ctx, desc, get, append(opts, interceptor.Resume(func(last proto.Message) (proto.Message, bool) {
			p.blame("resume")
			return last, true
		}))...)
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
	if left := held(s.retrier, p.fuse, p.purse); left != "" {
		t.Errorf("held: %s; %v", left, p)
	}
	time.Sleep(time.Hour)
}

// panicking is a stream whose RecvMsg panics.
type panicking struct{ grpc.ClientStream }

func (panicking) RecvMsg(any) error { panic("inner") }

// Observers are told of the end of a stream although the caller's OnFinish panics, too.
func TestStreamPanic_OnFinishToo(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return panicking{stream} })
		s.On(get, testserver.Hang())
		stream := s.open(t, t.Context(), bidiStream, grpc.OnFinish(func(error) { panic("OnFinish") }))
		var seen any
		func() {
			defer func() { seen = recover() }()
			_, _ = receive(stream)
		}()
		synctest.Wait()
		if seen == nil || len(s.calls) != 1 {
			t.Errorf("the application sees the panic %v; observers are told of %d ends", seen, len(s.calls))
		}
	})
}
