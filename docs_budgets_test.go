// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package stagger_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// The settings in docs/budgets.md do what the page says of the AWS SDKs: what is granted in an outage, and the first
// backoff.
func TestPages_AWS(t *testing.T) {
	t.Parallel()
	files := blocks(pages(t)["docs/budgets.md"], "yaml")
	if len(files) != 1 {
		t.Fatalf("%d files; want one", len(files))
	}
	set := must.Get(policy.Parse("aws.yaml", []byte(files[0])))(t)
	timeout := decision.Outcome{Status: status.New(codes.DeadlineExceeded, ""), TimedOut: true}
	for name, row := range map[string]struct {
		out     decision.Outcome
		granted int
		longest time.Duration
	}{
		"a failure":  {decision.Outcome{Status: status.New(codes.Unavailable, "")}, 35, 50 * time.Millisecond}, // 500 / 14
		"throttling": {decision.Outcome{Status: status.New(codes.ResourceExhausted, "")}, 100, time.Second},    // 500 / 5
		"a timeout":  {timeout, 35, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := must.Get(budget.New(set.Config().Budgets[0].Config))(t)
			p := decision.Compile(set).Lookup("/acme.orders.v1.OrderService/GetOrder")
			granted := 0
			for {
				now := time.Now()
				d := p.Decide(&decision.Call{Attempts: 1, Safe: true}, p.Classify(&row.out, now), paid{b}, now, 1-1.0/(1<<53))
				if !d.Retry {
					if d.Reason != policy.ReasonBudgetExhausted {
						t.Fatalf("refused by %s", d.Reason)
					}
					break
				}
				if granted++; d.Delay.Round(time.Microsecond) != row.longest {
					t.Fatalf("the longest first backoff is %v; want %v", d.Delay, row.longest)
				}
			}
			if granted != row.granted {
				t.Errorf("%d retries are granted; want %d", granted, row.granted)
			}
		})
	}
}

// paid returns the gates of a call that only a budget can refuse.
type paid struct{ budget.Budget }

func (paid) Off() policy.Reason                   { return "" }
func (paid) Open() bool                           { return false }
func (paid) SlowEverywhere(decision.Outcome) bool { return false }
func (paid) Overloaded() bool                     { return false }
func (paid) TakeSlot() bool                       { return true }
func (paid) ReleaseSlot()                         {}
func (paid) Fail()                                {}
func (p paid) Withdraw(out decision.Outcome, factor float64) bool {
	kind := budget.KindFailure
	if out.TimedOut {
		kind = budget.KindTimeout
	}
	_, granted := p.Budget.Withdraw(time.Now(), budget.Charge{Kind: kind, Factor: factor})
	return granted
}
