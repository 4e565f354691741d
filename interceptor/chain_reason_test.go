// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// ending is a call made inside an incoming one that fails for a reason.
type ending struct {
	name    string
	config  spec.Config
	options []interceptor.Option
	call    func(ctx context.Context, t *testing.T, s scene) error
	reason  policy.Reason
	stops   bool // the upstream caller gets pushback
}

// calls prepares something, and calls GetOrder.
func calls(prepare func(t *testing.T, s scene), opts ...grpc.CallOption) func(context.Context, *testing.T, scene) error {
	return func(ctx context.Context, t *testing.T, s scene) error {
		t.Helper()
		prepare(t, s)
		_, err := s.call(ctx, get, opts...)
		return err
	}
}

// answering makes a call whose attempts get steps as answers.
func answering(steps ...testserver.Step) func(context.Context, *testing.T, scene) error {
	return calls(func(_ *testing.T, s scene) { s.On(get, steps...) })
}

// endings are at least one for each reason that can end a call with an error.
func endings() []ending {
	retries, none := config(plain()), config(plain())
	with := func(change func(*spec.Policy)) spec.Config {
		c := config(plain())
		for i := range c.Methods {
			change(&c.Methods[i].Policy)
		}
		return c
	}
	none.Methods = nil
	limited := with(func(s *spec.Policy) { s.Timeout = time.Second })
	suppressed := with(func(s *spec.Policy) { s.Retry.Chain = "SUPPRESS" })
	slow := with(func(s *spec.Policy) { s.Timeout, s.Retry.PerAttemptTimeout = time.Second, 200*ms })
	broke := with(func(s *spec.Policy) { s.Retry.Budget = "" })
	mode := func(m policy.Mode, c spec.Config) spec.Config {
		c.Mode = string(m)
		return c
	}
	old := func(t *testing.T, s scene) {
		t.Helper()
		s.leave()
		_, _ = s.took(t, "unary")
		time.Sleep(7 * time.Second)
	}
	aged := func(t *testing.T, s scene) { t.Helper(); s.leave() }
	unavailable := testserver.Fail(codes.Unavailable)
	return []ending{
		{"another code", retries, nil, answering(testserver.Fail(codes.NotFound)), policy.ReasonNonRetryable, false},
		{"a cut stream", retries, nil, cutStream, policy.ReasonCommitted, false},
		{"after 4 attempts", retries, nil, answering(unavailable), policy.ReasonAttemptsExhausted, true},
		{"of one attempt, by the caller", retries, nil, calls(func(_ *testing.T, s scene) { s.On(get, unavailable) }, interceptor.MaxAttempts(1)), policy.ReasonAttemptsExhausted, false},
		{"of one attempt, and the service below has given up", retries, nil, calls(func(_ *testing.T, s scene) {
			s.On(get, unavailable.Pushback("-1"))
		}, interceptor.MaxAttempts(1)), policy.ReasonAttemptsExhausted, true},
		{"no policy", none, nil, answering(unavailable), policy.ReasonNonRetryable, false},
		{"no policy, and the service below has given up", none, nil, answering(unavailable.Pushback("-1")), policy.ReasonNonRetryable, true},
		{"no policy, and a long delay", none, nil, answering(unavailable.Pushback("600000")), policy.ReasonNonRetryable, false},
		{"no policy, and no such order", none, nil, answering(testserver.Fail(codes.NotFound).Pushback("-1")), policy.ReasonNonRetryable, false},
		{"nobody declares it safe", retries, nil, func(ctx context.Context, _ *testing.T, s scene) error {
			s.On(create, unavailable)
			_, err := s.call(ctx, create)
			return err
		}, policy.ReasonNotIdempotent, false},
		{"at once", retries, nil, answering(unavailable.Pushback("-1")), policy.ReasonPushbackStop, true},
		{"left to the caller above", suppressed, nil, func(ctx context.Context, _ *testing.T, s scene) error {
			s.On(get, unavailable)
			_, err := s.call(metadata.NewIncomingContext(ctx, metadata.Pairs("grpc-previous-rpc-attempts", "1")), get)
			return err
		}, policy.ReasonChainStop, false},
		{"after 1 attempt", retries, []interceptor.Option{withFuse(&fuse{limit: 1})}, answering(unavailable), policy.ReasonBreakerOpen, true},
		{"ten slow answers before", slow, nil, calls(func(t *testing.T, s scene) {
			s.forget()
			s.takes(t, nil, get, repeat(300*ms, 10)...)
			s.On(get, testserver.Hang())
		}), policy.ReasonSlowEverywhere, true},
		{"three answers were slow", slow, nil, calls(func(t *testing.T, s scene) {
			s.forget()
			s.takes(t, nil, get, append(repeat(10*ms, 7), repeat(250*ms, 3)...)...)
			s.On(get, testserver.Hang())
		}), policy.ReasonNotProvenFast, true},
		{"delay of 2 s", limited, nil, answering(unavailable.Pushback("2000")), policy.ReasonDeadlineTooClose, true},
		{"no slot", waiting(retries, 1), nil, calls(func(t *testing.T, s scene) {
			s.On(get, unavailable)
			go func() { _, _ = s.call(t.Context(), get) }()
			synctest.Wait()
		}), policy.ReasonTooManyWaiting, true},
		{"no permit", broke, []interceptor.Option{interceptor.WithBudget("", forAll(&purse{}))}, answering(unavailable), policy.ReasonBudgetExhausted, true},
		{"while everything fails", broke, []interceptor.Option{interceptor.WithBudget("", forAll(laterBudget{}))}, answering(unavailable), policy.ReasonFailingEverywhere, true},
		{"in the first attempt", limited, nil, answering(testserver.Hang()), policy.ReasonDeadlineExceeded, false},
		{"in the second attempt", limited, nil, answering(unavailable.Times(1), testserver.Hang()), policy.ReasonDeadlineExceeded, true},
		{"in the second attempt", retries, nil, cancelled, policy.ReasonCancelled, false},
		{"in the wait for the second attempt", retries, nil, calls(func(_ *testing.T, s scene) {
			s.On(get, unavailable)
			time.AfterFunc(50*ms, s.retrier.Close)
		}), policy.ReasonClosed, false},
		{"after a wait", retries, nil, calls(aged), policy.ReasonNotConnected, true},
		{"without a wait", retries, nil, calls(old), policy.ReasonNotConnected, true},
		{"without a wait, by the caller", retries, nil, calls(aged, grpc.WaitForReady(false)), policy.ReasonNotConnected, true},
		{"switched off in between", retries, nil, calls(func(t *testing.T, s scene) {
			s.On(get, unavailable)
			time.AfterFunc(150*ms, func() { mustSetMode(t, s.retrier, policy.ModeOff) })
		}), policy.ReasonModeOff, false},
		{"observed", mode(policy.ModeObserve, config(plain())), nil, answering(unavailable), policy.ReasonModeOff, false},
		{"observed", mode(policy.ModeObserve, config(plain())), nil, answering(unavailable.Pushback("-1")), policy.ReasonPushbackStop, false},
		{"observed", mode(policy.ModeObserve, config(plain())), nil, calls(aged), policy.ReasonModeOff, false},
		{"off", mode(policy.ModeOff, config(plain())), nil, answering(unavailable.Pushback("-1")), policy.ReasonPushbackStop, false},
		{"off", mode(policy.ModeOff, config(plain())), nil, calls(aged), policy.ReasonModeOff, false},
	}
}

func mustSetMode(t *testing.T, r *interceptor.Retrier, m policy.Mode) {
	t.Helper()
	if err := r.SetMode(interceptor.ModeSwitch{Mode: m}); err != nil {
		t.Error(err)
	}
}

// cutStream reads a stream that breaks after its first message.
func cutStream(ctx context.Context, _ *testing.T, s scene) error {
	s.On(get, faults.Play(faults.Send(wrapperspb.String("a"))).Then(testserver.Fail(codes.Unavailable)))
	return ask(ctx, s.conn, false)
}

// cancelled is a call whose caller gives up in its second attempt.
func cancelled(ctx context.Context, _ *testing.T, s scene) error {
	s.On(get, down().Times(1), testserver.Hang())
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	time.AfterFunc(time.Second, cancel)
	_, err := s.call(ctx, get)
	return err
}

// For each reason, whether the upstream caller gets pushback.
func TestChain_Reason(t *testing.T) {
	t.Parallel()
	seen := map[policy.Reason]bool{
		policy.ReasonSucceeded: true, policy.ReasonRetry: true, policy.ReasonHedge: true, policy.ReasonFollowed: true, // no ends of failed calls
		policy.ReasonOverloaded: true, // see TestAdmission_Chain of package admission
	}
	for _, e := range endings() {
		seen[e.reason] = true
		t.Run(string(e.reason)+"/"+e.name, func(t *testing.T) {
			play(t, e.config, func(t *testing.T, s scene) {
				var (
					told metadata.MD
					err  error
				)
				ctx := grpc.NewContextWithServerTransportStream(t.Context(), trailers{&told})
				_, _ = s.retrier.UnaryServer()(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
					err = e.call(ctx, t, s)
					return nil, err
				})
				var want []string
				if e.stops {
					want = []string{"-1"}
				}
				if got := told.Get(decision.PushbackTrailer); err == nil || reasonOf(err) != e.reason || !slices.Equal(got, want) {
					t.Errorf("%v (%s): the caller above is told %v; want %v of %s", err, reasonOf(err), got, want, e.reason)
				}
			}, e.options...)
		})
	}
	for _, reason := range decision.Reasons() {
		if !seen[reason] {
			t.Errorf("no row for %s", reason)
		}
	}
}
