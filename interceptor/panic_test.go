// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// held is what calls have got from their gates and not given back; "" for nothing.
func held(r *interceptor.Retrier, f *fuse, b *purse) string {
	permits := len(b.asked) - b.returned - b.refunded - b.wasted
	if leaves := f.granted - len(f.told); permits != 0 || leaves != 0 || r.State().Waiting.All() != 0 {
		return fmt.Sprintf("%d permits, %d leaves of the breaker, %d places", permits, leaves, r.State().Waiting.All())
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

func (b panickingBudget) Allow(now time.Time, c budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	b.world.blame("allow")
	answer, inner := b.purse.Allow(now, c)
	return answer, func(now time.Time, how budget.End) {
		inner(now, how)
		b.world.blame("%s", map[budget.End]string{budget.EndUnsent: "unsent", budget.EndFailed: "failed", budget.EndHelped: "helped"}[how])
	}
}

func (p *panics) options(watched bool) []interceptor.Option {
	options := []interceptor.Option{
		interceptor.WithBudget("", forAll(panickingBudget{p.purse, p})),
		interceptor.WithObserver(interceptor.Observer{
			Decision:   func(context.Context, interceptor.Event) { p.blame("decisions") },
			CallEnd:    func(context.Context, interceptor.CallEnd) { p.blame("calls") },
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

// A panic in the caller's goroutine comes up as it is, and what the call holds is released on the way, attempts of other goroutines among
// it.
func TestPanic_Unary(t *testing.T) {
	t.Parallel()
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
		beside  bool // the second attempt is made by a goroutine of ours, whose panic would end the program
	}{
		"unobserved":  {config(plain()), false, false},
		"retries":     {config(plain()), true, false},
		"one attempt": {spec.Config{}, true, false},
		"hedges":      {hedged(), true, true},
		"beside":      {config(besides()), true, true},
	} {
		paid(row.config)
		for _, culprit := range culprits {
			if row.beside && !strings.HasPrefix(culprit, "attempt 1") {
				continue
			}
			t.Run(strings.ReplaceAll(mode+"/"+culprit, " ", "_"), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					p := &panics{
						fuse: &fuse{limit: 10}, purse: &purse{grants: 99}, culprit: culprit,
					}
					r := mustNew(t, mustSet(t, row.config), p.options(row.watched)...)
					p.call(t, r)
					if p.reached.Load() {
						reached.Store(culprit, true)
					}
				})
			})
		}
	}
}

// call makes a call, of which the caller is to see the panic, and sees what is left. Its second attempt hangs.
func (p *panics) call(t *testing.T, r *interceptor.Retrier) {
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
					time.Sleep(300 * ms)
				}
				p.blame("attempt %d, late", n)
				if n == 2 && strings.HasSuffix(p.culprit, "late") {
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

// caught runs f and returns what it panics with.
func caught(f func()) (seen any) {
	defer func() { seen = recover() }()
	f()
	return nil
}

// panicsIn panics in one of its methods.
type panicsIn struct {
	grpc.ClientStream

	method string
}

func (p panicsIn) in(method string) {
	if method == p.method {
		panic("inner")
	}
}

func (p panicsIn) SendMsg(m any) error { p.in("SendMsg"); return p.ClientStream.SendMsg(m) }

func (p panicsIn) RecvMsg(m any) error          { p.in("RecvMsg"); return p.ClientStream.RecvMsg(m) }
func (p panicsIn) Header() (metadata.MD, error) { p.in("Header"); return p.ClientStream.Header() }
func (p panicsIn) CloseSend() error             { p.in("CloseSend"); return p.ClientStream.CloseSend() }

// Whatever an inner interceptor panics in, and however often the application recovers: nothing is held any more when
// the panic has come up, though the stream's context goes on.
func TestPanic_Stream(t *testing.T) {
	configs := map[string]spec.Config{
		"one attempt": {}, "two attempts": config(func() spec.Retry { r := plain(); r.MaxAttempts = 2; return r }()),
		"retries": config(plain()), "in place": config(hasty()), "beside": config(besides()), "hedges": hedged(),
	}
	for mode, c := range configs {
		paid(c)
		for _, method := range []string{"open", "SendMsg", "CloseSend", "Header", "RecvMsg"} {
			for number := 1; number <= 2; number++ {
				t.Run(fmt.Sprintf("%s/%s of attempt %d", mode, method, number), func(t *testing.T) {
					f, b := &fuse{limit: 99}, &purse{grants: 99}
					play(t, c, func(t *testing.T, s scene) {
						panickingStream(t, s, method, number)
						if left := held(s.retrier, f, b); left != "" || s.retrier.Replayed() != 0 {
							t.Errorf("held for ever: %s; %d bytes", left, s.retrier.Replayed())
						}
					}, withFuse(f), interceptor.WithBudget("", forAll(b)), described(t))
				})
			}
		}
	}
}

// panickingStream makes a stream whose attempt with that number panics in a method, if it comes to that.
func panickingStream(t *testing.T, s scene, method string, number int) {
	t.Helper()
	s.On(get, faults.Play(faults.Receive(1), faults.Pause(1500*ms)).Then(down()),
		faults.Play(faults.SendHeader(nil), faults.Echo(0)), testserver.Hang())
	var n atomic.Int64
	conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if n.Add(1) != int64(number) {
				return open(ctx, desc, cc, name, opts...)
			}
			p := panicsIn{nil, method}
			p.in("open")
			stream, err := open(ctx, desc, cc, name, opts...)
			p.ClientStream = stream
			return p, err
		}))...)
	seen := caught(func() {
		stream, err := conn.NewStream(context.Background(), bidiStream, get)
		if err != nil {
			t.Error(err)
			return
		}
		_ = stream.SendMsg(wrapperspb.String("x")) // unless the panic came before
		_ = stream.CloseSend()
		_, _ = receive(stream)
	})
	if seen != nil && seen != "inner" {
		t.Errorf("panics with %v", seen)
	}
	time.Sleep(time.Hour)
}

// After a panic that the application has recovered, its stream is over: other operations return.
func TestPanic_StreamIsOver(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return panicsIn{stream, "RecvMsg"} })
		s.On(get, testserver.Hang())
		stream := s.open(t, context.Background(), bidiStream)
		seen := caught(func() { _, _ = receive(stream) })
		_, err := receive(stream)
		header, _ := stream.Header()
		if seen != "inner" || err == nil || header != nil || stream.Trailer() != nil || stream.CloseSend() != nil {
			t.Errorf("panics with %v, then %v, %v", seen, err, header)
		}
		synctest.Wait()
		if n := s.Count(get); n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}

// An attempt that ends its goroutine, as t.FailNow does, ends the call: what it holds is released on the way up.
func TestPanic_Goexit(t *testing.T) {
	for name, c := range map[string]spec.Config{"retries": config(plain()), "hedges": hedged(), "beside": config(besides())} {
		for number := int64(1); number <= 2; number++ {
			t.Run(fmt.Sprintf("%s/attempt %d", name, number), func(t *testing.T) {
				f, b := &fuse{limit: 99}, &purse{grants: 99}
				paid(c)
				play(t, c, func(t *testing.T, s scene) {
					var n atomic.Int64
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
						func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
							if n.Add(1) == number {
								runtime.Goexit()
							}
							return status.Error(codes.Unavailable, "")
						}))...)
					returned := false
					over := make(chan struct{})
					go func() {
						defer close(over)
						_ = conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue))
						returned = true
					}()
					<-over
					if left := held(s.retrier, f, b); left != "" || returned || n.Load() != number {
						t.Errorf("returned %v after %d attempts; held for ever: %s", returned, n.Load(), left)
					}
				}, withFuse(f), interceptor.WithBudget("", forAll(b)))
			})
		}
	}
}

const panicsInOurs = "STAGGER_TEST_PANIC"

// A panic in a goroutine of ours ends the program, as in any goroutine: nothing recovers it.
func TestPanic_EndsTheProgram(t *testing.T) {
	t.Parallel()
	if os.Getenv(panicsInOurs) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanic_EndsTheProgram$")
		again.Env = append(os.Environ(), panicsInOurs+"=yes")
		if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: in a hedge") {
			t.Errorf("the program has ended with %v\n%s", err, out)
		}
		return
	}
	r := mustNew(t, mustSet(t, hedged()), quiet)
	var sent atomic.Int64
	defer func() { _ = recover() }() // of the caller's goroutine, which sees nothing of it
	_ = r.Unary()(t.Context(), get, nil, new(wrapperspb.StringValue), nil,
		func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			if sent.Add(1) == 2 {
				panic("in a hedge")
			}
			<-ctx.Done()
			return ctx.Err()
		})
}
