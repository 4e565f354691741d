// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

// hasty gives an attempt a second before another one may replace it.
func hasty() spec.Retry {
	retry := plain()
	retry.PerAttemptTimeout, retry.OnAttemptTimeout = time.Second, "RETRY"
	return retry
}

// purse is a budget that counts, and grants as configured.
type purse struct {
	mu      sync.Mutex // guards all below
	grants  int
	asked   []string
	failed  int // attempts
	ok, bad int // calls

	returned, refunded, wasted int // extra attempts: never sent, helped, failed
}

func (p *purse) count(n *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

func (p *purse) Observe(_ time.Time, e budget.Event) {
	switch e {
	case budget.EventAttemptFailed:
		p.count(&p.failed)
	case budget.EventCallFailed:
		p.count(&p.bad)
	case budget.EventCallSucceeded:
		p.count(&p.ok)
	}
}

func (p *purse) Allow(_ time.Time, c budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, map[budget.Cause]string{budget.CauseFailure: "failure", budget.CauseSlow: "slow", budget.CauseReconnected: "reconnected"}[c])
	if c == budget.CauseReconnected {
		return budget.Yes, nil
	}
	p.grants--
	if p.grants < 0 {
		return budget.No, nil
	}
	return budget.Yes, p.ended
}

func (p *purse) ended(_ time.Time, how budget.End) {
	switch how {
	case budget.EndUnsent:
		p.count(&p.returned)
	case budget.EndHelped:
		p.count(&p.refunded)
	default:
		p.count(&p.wasted)
	}
}

func (*purse) State(time.Time) budget.State { return budget.State{} }

func (p *purse) String() string {
	return fmt.Sprintf("asked %v, failed %d, returned %d, refunded %d, ok %d, bad %d",
		p.asked, p.failed, p.returned, p.refunded, p.ok, p.bad)
}

func TestUnaryTimeout_DeadlineOfCall(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		testkit.Must(s.call(ctx, get))(t)
		if got := s.Attempts()[0].Timeout; got != 10*time.Second {
			t.Errorf("the server was told of %v; want 10s, since the attempt may go on", got)
		}
	})
}

// forAll returns a function that returns the budget of all targets.
func forAll(b budget.Budget) func(string) budget.Budget {
	return func(string) budget.Budget { return b }
}

var noCredentials = insecure.NewCredentials()

// charged runs a test with hasty retries that a purse pays for.
func charged(t *testing.T, test func(t *testing.T, s scene, p *purse), options ...interceptor.Option) {
	t.Helper()
	p := &purse{grants: 99}
	retry := hasty()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) { test(t, s, p) }, append(options, interceptor.WithBudget("", forAll(p)))...)
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
					attempts++
					if attempts == 1 {
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

func TestStreamTimeout_UnreadMessage(t *testing.T) {
	play(t, config(hasty()), func(t *testing.T, s scene) {
		s.On(get,
			faults.Play(faults.Receive(1), say("of the first"), faults.Receive(1)),
			faults.Play(faults.Receive(2), say("of the second")))
		stream := s.open(t, t.Context(), bidiStream)
		send(t, stream, "x")
		time.Sleep(1500 * ms) // the application doesn't receive the message, which has arrived in time
		send(t, stream, "y")
		if got, err := receive(stream); fmt.Sprint(got) != "[of the first]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}
