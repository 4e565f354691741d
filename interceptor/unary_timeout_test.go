// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// hasty gives an attempt a second before another one may replace it.
func hasty() policy.RetrySpec {
	retry := plain()
	retry.PerAttemptTimeout, retry.CancelOnTimeout = time.Second, true
	return retry
}

// purse is a budget that counts, and grants as configured.
type purse struct {
	mu                                           sync.Mutex // guards all below
	grants                                       int
	asked                                        []string
	started, failed, returned, refunded, ok, bad int
}

func (p *purse) count(n *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

func (p *purse) Observe(_ time.Time, e budget.Event) {
	switch e {
	case budget.EventCallStarted:
		p.count(&p.started)
	case budget.EventAttemptFailed:
		p.count(&p.failed)
	case budget.EventCallFailed:
		p.count(&p.bad)
	default:
		p.count(&p.ok)
	}
}

func (p *purse) Settle(_ time.Time, _ budget.Permit, o budget.Outcome) {
	switch o {
	case budget.OutcomeUnsent:
		p.count(&p.returned)
	case budget.OutcomeHelped:
		p.count(&p.refunded)
	default:
	}
}

func (p *purse) Withdraw(_ time.Time, k budget.Kind, _ float64) (budget.Permit, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, map[budget.Kind]string{
		budget.KindFailure: "failure", budget.KindTimeout: "timeout", budget.KindHedge: "hedge", budget.KindUnsent: "unsent",
	}[k])
	p.grants--
	return budget.Permit{}, p.grants >= 0
}

func (*purse) State(time.Time) budget.State { return budget.State{} }

func (p *purse) String() string {
	return fmt.Sprintf("asked %v, failed %d, returned %d, refunded %d, ok %d, bad %d",
		p.asked, p.failed, p.returned, p.refunded, p.ok, p.bad)
}

func TestUnaryTimeout_Abandoned(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang().Times(1), text("hello"))
		if got, err := s.call(t.Context(), get); err != nil || got != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
		synctest.Wait()
		first := s.Attempts()[0]
		if !first.Cancelled || first.End.Sub(first.Time) != 1100*ms {
			t.Errorf("the first attempt ended after %v, cancelled %v; want 1.1s, with the backoff of the second", first.End.Sub(first.Time), first.Cancelled)
		}
		if s.attempts[0].Place != "abandoned" || s.attempts[1].Place != "" {
			t.Errorf("%q, %q; want the first abandoned", s.attempts[0].Place, s.attempts[1].Place)
		}
	})
}

func TestUnaryTimeout_AnswerInBackoff(t *testing.T) {
	p := &purse{grants: 9}
	retry := hasty()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, text("slow").Delay(1050*ms), text("never sent"))
		got, err := s.call(t.Context(), get)
		if err != nil || got != "slow" || s.Count(get) != 1 {
			t.Errorf("%q, %v after %d attempts; want the slow answer of the first", got, err, s.Count(get))
		}
		if got := p.String(); got != "asked [timeout], failed 0, returned 1, refunded 0, ok 1, bad 0" {
			t.Errorf("the budget: %s", got)
		}
	}, interceptor.WithBudget("", p))
}

// An attempt is abandoned only for a better one: where the policy allows no other, it goes on.
func TestUnaryTimeout_GoesOn(t *testing.T) {
	t.Parallel()
	broke := hasty()
	broke.Budget = "empty"
	two := hasty()
	two.MaxAttempts = 2
	for name, row := range map[string]struct {
		retry   policy.RetrySpec
		method  string
		timeout time.Duration
		script  []testserver.Step
		reason  policy.Reason
	}{
		"the budget is empty":    {broke, get, time.Minute, []testserver.Step{text("slow").Delay(5 * time.Second)}, policy.ReasonBudgetExhausted},
		"the method is unsafe":   {hasty(), create, time.Minute, []testserver.Step{text("slow").Delay(5 * time.Second)}, policy.ReasonNotIdempotent},
		"it is the last attempt": {two, get, time.Minute, []testserver.Step{down(), text("slow").Delay(5 * time.Second)}, policy.ReasonRetry},
		"the deadline is near":   {hasty(), get, 1050 * ms, []testserver.Step{text("slow").Delay(1040 * ms)}, policy.ReasonDeadlineTooClose},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(row.retry)
			c.Budgets = []policy.BudgetSpec{{Name: "empty", Config: budget.DefaultRatio()}}
			play(t, c, func(t *testing.T, s scene) {
				s.On(row.method, row.script...)
				ctx, cancel := context.WithTimeout(t.Context(), row.timeout)
				defer cancel()
				got, err := s.call(ctx, row.method)
				if err != nil || got != "slow" {
					t.Errorf("%q, %v; want the answer of the slow attempt", got, err)
				}
				if last := s.decisions[len(s.decisions)-1]; last.Reason != row.reason {
					t.Errorf("the last decision was %s; want %s", last.Reason, row.reason)
				}
			}, interceptor.WithBudget("empty", &purse{}))
		})
	}
}

func TestUnaryTimeout_Charged(t *testing.T) {
	p := &purse{grants: 9}
	retry := hasty()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang().Times(1), down(), text(""))
		must.Get(s.call(t.Context(), get))(t)
		// The abandoned attempt and the failed one count as failures of the server.
		if got := p.String(); got != "asked [timeout failure], failed 2, returned 0, refunded 1, ok 1, bad 0" {
			t.Errorf("the budget: %s", got)
		}
	}, interceptor.WithBudget("", p))
}

func TestUnaryTimeout_DeadlineOfCall(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		must.Get(s.call(ctx, get))(t)
		if got := s.Attempts()[0].Timeout; got != 10*time.Second {
			t.Errorf("the server was told of %v; want 10s, since the attempt may go on", got)
		}
	})
}

// The timeout and the answer come at the same instant, in every order the scheduler finds.
func TestUnaryTimeout_Crossing(t *testing.T) {
	p := &purse{grants: 1 << 30}
	retry := hasty()
	retry.Budget = ""
	retry.Backoff.Initial, retry.Backoff.Max = 1, 1
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, text("just so").Delay(time.Second))
		for range 300 {
			// The timeout's goroutine and the answer's are both ready at one second.
			if got, err := s.call(t.Context(), get); err != nil || got != "just so" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		extra := s.Count(get) - 300
		if len(p.asked)-p.returned != extra {
			t.Errorf("%d permits, %d returned, %d extra attempts", len(p.asked), p.returned, extra)
		}
	}, interceptor.WithBudget("", p))
}

// In an overload late answers would pay for more extra attempts, which deepen it.
func TestUnaryTimeout_LateAnswer(t *testing.T) {
	t.Parallel()
	two := hasty()
	two.Budget, two.MaxAttempts = "", 2
	for delay, refunds := range map[time.Duration]int{time.Second: 1, time.Second + 1: 0} {
		t.Run(delay.String(), func(t *testing.T) {
			p := &purse{grants: 9}
			play(t, config(two), func(t *testing.T, s scene) {
				s.On(get, down(), text("").Delay(delay))
				must.Get(s.call(t.Context(), get))(t)
				if p.refunded != refunds {
					t.Errorf("%d refunds; want %d", p.refunded, refunds)
				}
			}, interceptor.WithBudget("", p))
		})
	}
}

var noCredentials = insecure.NewCredentials()

// charged runs a test with hasty retries that a purse pays for.
func charged(t *testing.T, test func(t *testing.T, s scene, p *purse), options ...interceptor.Option) {
	t.Helper()
	p := &purse{grants: 99}
	retry := hasty()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) { test(t, s, p) }, append(options, interceptor.WithBudget("", p))...)
}

func TestUnaryTimeout_PermitOfUnsent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script []testserver.Step
		cancel time.Duration
	}{
		"cancelled in a backoff":                     {[]testserver.Step{down()}, 50 * ms},
		"cancelled in the backoff after a timeout":   {[]testserver.Step{testserver.Hang()}, 1050 * ms},
		"answered in the backoff after a timeout":    {[]testserver.Step{text("").Delay(1050 * ms)}, time.Hour},
		"failed for good in the one after a timeout": {[]testserver.Step{testserver.Fail(codes.NotFound).Delay(1050 * ms)}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			charged(t, func(t *testing.T, s scene, p *purse) {
				s.On(get, row.script...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(row.cancel, cancel)
				_, _ = s.call(ctx, get)
				time.Sleep(time.Minute) // virtual: nothing is left that could still happen
				if len(p.asked) != 1 || p.returned != 1 || p.refunded != 0 || p.started != 1 || p.ok+p.bad != 1 {
					t.Errorf("%d calls, %v; want one permit, returned once", p.started, p)
				}
			})
		})
	}
}

// An inner interceptor that waits may return the bare error of its context.
func TestUnaryTimeout_ErrorsOfAbandoned(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  func(ctx context.Context) error
		want string
	}{
		"the context's own error": {func(ctx context.Context) error { return ctx.Err() }, "second <nil>"},
		"a status of it":          {func(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }, "second <nil>"},
		"an answer after all":     {func(context.Context) error { return status.Error(codes.NotFound, "no order 7") }, " rpc error: code = NotFound desc = no order 7"},
	} {
		t.Run(name, func(t *testing.T) {
			charged(t, func(t *testing.T, s scene, p *purse) {
				attempts := 0
				inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if attempts++; attempts == 1 {
						<-ctx.Done()
						return row.err(ctx)
					}
					return invoke(ctx, method, req, reply, cc, opts...)
				}
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
				s.On(get, text("second"))
				got, err := s.call(t.Context(), get)
				if got := fmt.Sprint(got, " ", err); got != row.want {
					t.Errorf("%s; want %s", got, row.want)
				}
				if extra := attempts - 1; len(p.asked)-p.returned != extra {
					t.Errorf("%d extra attempts, %v", extra, p)
				}
			})
		})
	}
}

func TestUnaryTimeout_CancelledNotBudget(t *testing.T) {
	charged(t, func(t *testing.T, s scene, p *purse) {
		p.grants = 0
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		if _, err := s.call(ctx, get); reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%s; want cancelled", reasonOf(err))
		}
	})
}
