// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A chaos test makes many calls of which anything may happen, with every policy, and sees that each has one answer and
// leaves nothing behind. What it needs for that stands here: a budget, a breaker and an observer that find fault.

// findings are what went wrong.
type findings struct {
	mu   sync.Mutex
	list []string
}

func (f *findings) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) < 10 {
		f.list = append(f.list, fmt.Sprintf(format, args...))
	}
}

// ledger is a budget that sees that every permit is given back once, and every call finished once, after that.
type ledger struct {
	budget.Budget
	*findings

	book     sync.Mutex // guards all below
	permits  int64
	open     map[int64]budget.Permit // what the budget itself has given
	running  int
	finished int
}

func (l *ledger) Start(now time.Duration) {
	l.book.Lock()
	l.running++
	l.book.Unlock()
	l.Budget.Start(now)
}

func (l *ledger) Finish(now time.Duration, e budget.End) {
	l.book.Lock()
	l.running--
	l.finished++
	l.book.Unlock()
	l.Budget.Finish(now, e)
}

func (l *ledger) Withdraw(now time.Duration, c budget.Charge) (budget.Permit, bool) {
	p, ok := l.Budget.Withdraw(now, c)
	if !ok {
		return p, false
	}
	l.book.Lock()
	defer l.book.Unlock()
	l.permits++
	l.open[l.permits] = p
	return budget.Permit{Kind: p.Kind, At: p.At, Cost: l.permits}, true
}

func (l *ledger) Return(now time.Duration, p budget.Permit) { l.Budget.Return(now, l.take(p)) }

func (l *ledger) Settle(now time.Duration, p budget.Permit, helped bool) {
	l.Budget.Settle(now, l.take(p), helped)
}

func (l *ledger) take(p budget.Permit) budget.Permit {
	l.book.Lock()
	defer l.book.Unlock()
	own, ok := l.open[p.Cost]
	if !ok {
		l.add("permit %d is given back twice", p.Cost)
	}
	delete(l.open, p.Cost)
	return own
}

// circuit is a breaker that refuses now and then, and sees that it is told once how each attempt ends.
type circuit struct {
	*findings

	refuses func() bool
	running atomic.Int64
}

var errRefused = errors.New("refused by chance")

func (c *circuit) State() fuseState { return "closed" }

func (c *circuit) Allow() (func(error), error) {
	if c.refuses() {
		return nil, errRefused
	}
	c.running.Add(1)
	var told atomic.Bool
	return func(error) {
		if told.Swap(true) {
			c.add("the breaker is told twice")
		}
		c.running.Add(-1)
	}, nil
}

// story is what observers are told of one call; it is in the call's context.
type story struct {
	*findings

	most     int
	busy     atomic.Bool // with one event at a time
	attempts map[int]bool
	ended    int
}

type storyKey struct{}

// listener sees that events come one at a time for each call, of every attempt once, and in order.
func listener() interceptor.Observer {
	hear := func(ctx context.Context, event func(*story)) {
		s, ok := ctx.Value(storyKey{}).(*story)
		if !ok {
			return
		}
		if s.busy.Swap(true) {
			s.add("two events at a time")
		}
		event(s)
		s.busy.Store(false)
	}
	return interceptor.Observer{
		Attempt: func(ctx context.Context, e interceptor.AttemptEvent) {
			hear(ctx, func(s *story) {
				if s.attempts[e.Number] || s.ended > 0 || e.Number > s.most {
					s.add("attempt %d of %d ends twice or late: %v", e.Number, s.most, s.attempts)
				}
				s.attempts[e.Number] = true
			})
		},
		Decision: func(ctx context.Context, e interceptor.DecisionEvent) {
			hear(ctx, func(s *story) {
				if s.ended > 0 || e.Attempt > s.most || e.TimedOut == s.attempts[e.Attempt] || !slices.Contains(policy.Reasons(), e.Decision.Reason) {
					s.add("a decision about attempt %d, of %v: %+v", e.Attempt, s.attempts, e)
				}
			})
		},
		Call: func(ctx context.Context, e interceptor.CallEvent) {
			hear(ctx, func(s *story) {
				if s.ended++; s.ended > 1 || len(s.attempts) != e.Attempts || !slices.Contains(policy.Reasons(), e.Reason) {
					s.add("the call ends after %d attempts, and of %v was told: %s", e.Attempts, s.attempts, e.Reason)
				}
			})
		},
		Warning: func(policy.Diagnostic) {},
	}
}

// chaosPolicies are policies of every kind.
func chaosPolicies() map[string]policy.Spec {
	retry := func(change func(*policy.RetrySpec)) policy.Spec {
		r := plain()
		r.Budget = ""
		r.Codes |= policy.Codes(codes.Aborted, codes.DeadlineExceeded)
		change(&r)
		return policy.Spec{Retry: &r}
	}
	hedge := func(change func(*policy.HedgeSpec)) policy.Spec {
		h := policy.HedgeSpec{MaxAttempts: 3, Delay: 30 * ms, NonFatal: policy.Codes(codes.Unavailable, codes.Aborted)}
		change(&h)
		return policy.Spec{Hedge: &h}
	}
	slow := func(on policy.OnTimeout) func(*policy.RetrySpec) {
		return func(r *policy.RetrySpec) { r.PerAttemptTimeout, r.OnAttemptTimeout = 60*ms, on }
	}
	admitted, admittedHedge := retry(slow(policy.OnTimeoutRetry)), hedge(func(*policy.HedgeSpec) {})
	admitted.Admission, admittedHedge.Admission = policy.AdmissionRefuse, policy.AdmissionRefuse
	limited := retry(slow(policy.OnTimeoutHedge))
	limited.Timeout, limited.IdempotencyKey = 300*ms, "key"
	return map[string]policy.Spec{
		"one attempt":      {},
		"retry":            retry(func(*policy.RetrySpec) {}),
		"headers":          retry(func(r *policy.RetrySpec) { r.CommitOn = policy.CommitOnHeaders }),
		"beside":           retry(slow(policy.OnTimeoutHedge)),
		"in place":         retry(slow(policy.OnTimeoutRetry)),
		"limited":          limited,
		"admission":        admitted,
		"admission, hedge": admittedHedge,
		"hedge":            hedge(func(*policy.HedgeSpec) {}),
		"at once":          hedge(func(h *policy.HedgeSpec) { h.Delay = 0 }),
		"quantile": hedge(func(h *policy.HedgeSpec) {
			h.Quantile = &policy.QuantileSpec{Quantile: 0.8, Min: 5 * ms}
		}),
	}
}

func chaosConfig(spec policy.Spec) policy.Config {
	return policy.Config{Methods: []policy.MethodConfig{
		{Names: []policy.Name{{Service: "acme.orders.v1.OrderService", Method: "GetOrder"}}, Spec: spec},
	}}
}

// chaosBudgets are budgets of every kind, and none.
func chaosBudgets(t *testing.T) map[string]budget.Budget {
	t.Helper()
	ratio, err := budget.NewRatio(budget.RatioConfig{Percent: 50, MinPerSecond: 100, Window: 10 * time.Second, TimeoutCost: 1})
	if err != nil {
		t.Fatal(err)
	}
	concurrent, err := budget.NewConcurrent(budget.ConcurrentConfig{Percent: 50, Min: 5})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]budget.Budget{"unlimited": budget.Unlimited, "ratio": ratio, "concurrent": concurrent}
}

// chance is a source of chance for many goroutines.
type chance struct {
	mu     sync.Mutex
	source *rand.Rand
}

func newChance(seed uint64) *chance { return &chance{source: rand.New(rand.NewPCG(seed, 0))} }

func (c *chance) of(p float64) bool { return c.float() < p }

func (c *chance) float() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.source.Float64()
}

// upTo is a time up to d, in milliseconds, so that events meet.
func (c *chance) upTo(d time.Duration) time.Duration {
	return time.Duration(c.float()*float64(d/ms)) * ms
}

// chaos is one world: a Retrier, and what finds fault with it.
type chaos struct {
	*findings
	*chance

	retrier *interceptor.Retrier
	ledger  *ledger
	circuit *circuit
	server  *testserver.Server
	conns   []*grpc.ClientConn
	most    int // attempts of a call
}

// newChaos makes a world with a policy and a budget.
func newChaos(t *testing.T, spec policy.Spec, b budget.Budget, seed uint64, inside grpc.DialOption, options ...interceptor.Option) *chaos {
	t.Helper()
	f, by := new(findings), newChance(seed)
	c := &chaos{
		findings: f, chance: by, server: testserver.Start(t, testserver.NoRecord()),
		ledger:  &ledger{Budget: b, findings: f, open: map[int64]budget.Permit{}},
		circuit: &circuit{findings: f, refuses: func() bool { return by.of(0.02) }},
		most:    mustPolicy(t, spec).MaxAttempts(),
	}
	c.retrier = mustNew(t, mustSet(t, chaosConfig(spec)), append(options,
		interceptor.WithObserver(listener()), interceptor.WithBudget("", c.ledger), interceptor.WithMaxWaiting(10),
		interceptor.WithBreaker(func(string, string) interceptor.Breaker[fuseState] { return c.circuit }),
		interceptor.WithClassifier(func(_ context.Context, _ string, reply any, _ error) interceptor.Verdict {
			if m, ok := reply.(*wrapperspb.StringValue); ok && m.GetValue() == "not yet" {
				return interceptor.VerdictRetry
			}
			return interceptor.VerdictByCode
		}))...)
	for range 3 {
		c.conns = append(c.conns, c.server.Dial(t, append(c.retrier.DialOptions(), soon, inside)...))
	}
	return c
}

// soon has a connection that was lost made again before the calls are over.
var soon = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * ms, Multiplier: 1.5, MaxDelay: 100 * ms},
	MinConnectTimeout: 100 * ms,
})

// watch gives a call a story, which it returns with the call's context.
func (c *chaos) watch(ctx context.Context) (context.Context, *story) {
	s := &story{findings: c.findings, most: c.most, attempts: map[int]bool{}}
	return context.WithValue(ctx, storyKey{}, s), s
}

// quarrel reloads the policies, and has the connections lost, until ctx ends.
func (c *chaos) quarrel(ctx context.Context, t *testing.T, spec policy.Spec) {
	for reloads := 0; ctx.Err() == nil; reloads++ {
		spec := spec
		if reloads%3 == 1 { // admission comes and goes while calls run
			spec.Admission = policy.AdmissionNone
		}
		if err := c.retrier.Reload(mustSet(t, chaosConfig(spec))); err != nil {
			c.add("reload: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.upTo(2 * time.Second)):
		}
		c.server.Down()
		time.Sleep(c.upTo(50 * ms))
		c.server.Up()
	}
}

// check finds what calls have left behind.
func (c *chaos) check(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if n := len(c.ledger.open); n > 0 || c.ledger.running != 0 {
		c.add("%d permits are not given back, %d calls not finished", n, c.ledger.running)
	}
	if n := c.circuit.running.Load(); n != 0 {
		c.add("the breaker is not told of %d attempts", n)
	}
	if n := c.retrier.Waiting(); n != 0 {
		c.add("%d calls wait", n)
	}
	for _, state := range c.retrier.Admission() {
		if state.Running != 0 {
			c.add("admission counts %d attempts", state.Running)
		}
		t.Logf("admission has refused %d calls", state.Refused)
	}
	for _, fault := range c.list {
		t.Error(fault)
	}
	if t.Failed() {
		t.Logf("%d calls were finished, with %d permits", c.ledger.finished, c.ledger.permits)
	}
}

// served is the call that a request names, and the attempt.
func served(a testserver.Attempt) string {
	request := new(wrapperspb.StringValue)
	_ = proto.Unmarshal(a.Requests[0], request)
	return fmt.Sprintf("%s/%d", request.GetValue(), previousAttempts(a)+1)
}

// ends is how an attempt of a unary call may end. The answer names the attempt, in all its parts.
func (c *chaos) ends(_ context.Context, a testserver.Attempt) testserver.Step {
	name := served(a)
	var step testserver.Step
	switch n := c.float(); {
	case n < 0.45:
		step = text(name)
	case n < 0.75:
		step = testserver.Fail([]codes.Code{codes.Unavailable, codes.Aborted, codes.NotFound, codes.ResourceExhausted}[int(n*100)%4], name)
	case n < 0.80:
		step = text("not yet")
	case n < 0.90:
		return testserver.Hang()
	case n < 0.92:
		return testserver.Drop()
	case n < 0.96:
		step = down().Pushback(fmt.Sprint(int(n*1000) % 90))
	default:
		step = down().Pushback("-1")
	}
	if c.of(0.7) {
		step = step.Header(metadata.Pairs("by", name))
	}
	return step.Trailer(metadata.Pairs("by", name)).Delay(c.upTo(90 * ms))
}

// inside is an inner interceptor that sometimes answers by itself, or panics.
func (c *chaos) inside(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	switch n := c.float(); {
	case n < 0.01:
		return status.Error(codes.Unavailable, "from inside")
	case n < 0.02:
		return errors.New("no status")
	case n < 0.03:
		<-ctx.Done()
		return ctx.Err()
	case n < 0.04:
		panic(errRefused)
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// call makes a unary call, of which anything may happen, and looks at its answer.
func (c *chaos) call(ctx context.Context, name string) {
	ctx, story := c.watch(ctx)
	until := time.Now().Add(time.Minute)
	if d := max(c.upTo(500*ms), ms); c.of(0.7) { // not 0: see TestStreamLeak_Hedged
		until = time.Now().Add(d)
	}
	var cancel context.CancelFunc
	if c.of(0.5) {
		ctx, cancel = context.WithDeadline(ctx, until)
	} else {
		ctx, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(time.Until(until), cancel).Stop()
	}
	defer cancel()
	var (
		header, trailer metadata.MD
		from            peer.Peer
		finished        []error
	)
	opts := []grpc.CallOption{
		namedHeader{grpc.HeaderCallOption{HeaderAddr: &header}, "x"},
		&grpc.TrailerCallOption{TrailerAddr: &trailer},
		grpc.Peer(&from), grpc.OnFinish(func(err error) { finished = append(finished, err) }),
	}
	reply := wrapperspb.String("what was there before")
	panics := true
	var err error
	func() {
		defer func() {
			if seen := recover(); panics && fmt.Sprint(seen) != errRefused.Error() {
				c.add("call %s panics with %v", name, seen)
			}
		}()
		err = c.conns[int(c.float()*3)].Invoke(ctx, get, wrapperspb.String(name), reply, opts...)
		panics = false
	}()
	if late := time.Since(until); late > 0 {
		c.add("call %s returns %v after its end", name, late)
	}
	if panics {
		return
	}
	if story.ended != 1 {
		c.add("of call %s, the end was told %d times", name, story.ended)
	}
	if len(finished) != 1 || !errors.Is(finished[0], err) {
		c.add("call %s ends with %v, and OnFinish was told %v", name, err, finished)
	}
	e, ours := errors.AsType[*interceptor.Error](err)
	answer := reply.GetValue()
	switch h, tr := header.Get("by"), trailer.Get("by"); {
	case len(h) > 0 && len(tr) > 0 && h[0] != tr[0]:
		c.add("call %s has the header of %v, the trailer of %v", name, h, tr)
	case err == nil && answer != "not yet" && (!slices.Equal(tr, []string{answer}) || from.Addr == nil):
		c.add("call %s has the answer %q, the trailer of %v, the peer %v", name, answer, tr, from.Addr)
	case err == nil && len(tr) == 0:
		c.add("call %s has the answer %q of nobody", name, answer)
	case len(tr) > 0 && tr[0][:len(name)+1] != name+"/":
		c.add("call %s has the answer of %v", name, tr)
	case err != nil && (!ours || e.Attempts > c.most || e.Attempts != len(story.attempts)):
		c.add("call %s ends with %v, of %v", name, err, story.attempts)
	case status.Code(err) == codes.NotFound && status.Convert(err).Message() != tr[0]:
		c.add("call %s ends with %v and the trailer of %v", name, err, tr)
	}
}

func TestUnaryChaos(t *testing.T) {
	t.Parallel()
	calls := 100
	if testing.Short() {
		calls = 30
	}
	for _, name := range slices.Sorted(maps.Keys(chaosPolicies())) {
		for kind := range chaosBudgets(t) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					spec := chaosPolicies()[name]
					var c *chaos
					c = newChaos(t, spec, chaosBudgets(t)[kind], rand.Uint64(), grpc.WithChainUnaryInterceptor(
						func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
							return c.inside(ctx, method, req, reply, cc, invoke, opts...)
						}))
					c.server.Default(testserver.Func(c.ends))
					ctx, stop := context.WithCancel(t.Context())
					var wg, others sync.WaitGroup
					others.Go(func() { c.quarrel(ctx, t, spec) })
					for g := range 10 {
						wg.Go(func() {
							for i := range calls / 10 {
								c.call(t.Context(), fmt.Sprintf("%d.%d", g, i))
								if g == 0 && i == calls/11 {
									_ = c.conns[0].Close()
								}
							}
						})
					}
					wg.Wait()
					stop()
					others.Wait()
					c.check(t)
				})
			})
		}
	}
}
