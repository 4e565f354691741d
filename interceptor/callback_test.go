// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
)

// meddler calls everything that a Retrier has, once from each callback. A callback that runs under a lock of the Retrier
// never returns, and the test ends with the stacks of all goroutines.
type meddler struct {
	t       *testing.T
	set     *policy.Set
	retrier *interceptor.Retrier
	conn    *grpc.ClientConn

	mu   sync.Mutex // guards all below
	from map[string]int
}

func (m *meddler) meddle(from string) {
	m.mu.Lock()
	m.from[from]++
	first := m.from[from] == 1
	m.mu.Unlock()
	if m.retrier == nil || !first { // the Retrier is being made, or the event comes from a call below
		return
	}
	r := m.retrier
	if err := r.Reload(m.set); err != nil {
		m.t.Errorf("Reload in %s: %v", from, err)
	}
	_ = r.Reload(nil)
	for _, mode := range []policy.Mode{policy.ModeOff, policy.ModeEnforce} {
		if err := r.Switch(interceptor.Switch{Mode: mode}); err != nil {
			m.t.Errorf("Switch in %s: %v", from, err)
		}
	}
	_ = r.State()
	_ = m.conn.Invoke(context.Background(), get, wrapperspb.String("order 7"), new(wrapperspb.StringValue))
	if stream, err := m.conn.NewStream(context.Background(), serverStream, get); err == nil {
		_ = stream.SendMsg(wrapperspb.String("order 7"))
		_ = stream.CloseSend()
		_ = stream.RecvMsg(new(wrapperspb.StringValue))
	}
}

func (m *meddler) observer() interceptor.Observer {
	return interceptor.Observer{
		CallStart: func(ctx context.Context, _ interceptor.Event) context.Context {
			m.meddle("CallStart")
			return ctx
		},
		Attempt:    func(context.Context, interceptor.Event) { m.meddle("Attempt") },
		Decision:   func(context.Context, interceptor.Event) { m.meddle("Decision") },
		Sent:       func(context.Context, interceptor.Event) { m.meddle("Sent") },
		Call:       func(context.Context, interceptor.Event) { m.meddle("Call") },
		Reload:     func(*policy.Set, []string, error) { m.meddle("Reload") },
		Mode:       func(_, _ interceptor.Switch) { m.meddle("Mode") },
		Diagnostic: func(d policy.Diagnostic) { m.meddle("Diagnostic " + strings.SplitN(d.Message, ",", 2)[0]) },
	}
}

func TestCallbacksMayUseTheRetrier(t *testing.T) {
	m := &meddler{t: t, from: map[string]int{}}
	playLive(t, nil, func(t *testing.T, s scene) {
		m.set = mustSet(t, policy.Config{Budgets: pooled().Budgets})
		s.On("*", down())
		config := strings.Replace(retries("3", `, "budgets": [{"name": "own", "ratio": {"fleet": {"name": "others", "perSecond": 5}}}]`), `"maxAttempts"`, `"budget": "own", "maxAttempts"`, 1)
		l := dialLive(t, s, config, s.retrier.Resolver)
		m.retrier, m.conn = s.retrier, l.conn
		_, _ = l.call(t.Context(), get)
		s.On("*", moves.Play(moves.Receive(1), moves.Send(wrapperspb.String("1"))).Then(down()))
		time.Sleep(time.Minute) // for the budget
		stream := l.open(t, t.Context(), serverStream, interceptor.Resume(func(proto.Message) (proto.Message, bool) {
			m.meddle("Resume")
			return nil, false
		}))
		send(t, stream, "order 7")
		_, _ = receive(stream)
		if err := s.retrier.Switch(interceptor.Switch{Mode: policy.ModeObserve}); err != nil {
			t.Error(err)
		}
		for _, from := range []string{"CallStart", "Attempt", "Decision", "Call", "Reload", "Mode", "Fleet.Draw", "classifier", "Resume", "Sent"} {
			if m.from[from] == 0 {
				t.Errorf("%s was not called; of %v", from, m.from)
			}
		}
	}, interceptor.WithObserver(m.observer()), interceptor.WithFleet(&distant{left: 5, meddle: m.meddle}),
		interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
			m.meddle("classifier")
			return interceptor.VerdictByCode
		}))
}

// A call makes the balance of a budget that a service config has delivered.
func TestCallbacksMayUseTheRetrier_DeliveredBudget(t *testing.T) {
	for name, row := range map[string]struct {
		option  func(m *meddler) interceptor.Option
		warning string
	}{
		"warning": {func(m *meddler) interceptor.Option {
			return interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) { m.meddle("Diagnostic") }})
		}, "cannot be used, so its calls get no other attempt: "},
		"fleet": {func(m *meddler) interceptor.Option {
			return interceptor.WithFleet(&distant{left: 5, meddle: m.meddle})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &meddler{t: t, from: map[string]int{}, set: mustSet(t, policy.Config{})}
			playLive(t, nil, func(t *testing.T, s scene) {
				s.On("*", down())
				config := strings.Replace(retries("3", `, "budgets": [{"name": "own", "ratio": {"fleet": {"name": "others", "perSecond": 5}}}]`), `"maxAttempts"`, `"budget": "own", "maxAttempts"`, 1)
				l := dialLive(t, s, config, s.retrier.Resolver)
				m.retrier, m.conn = s.retrier, l.conn
				_, _ = l.call(t.Context(), get)
				if got := strings.Join(s.warnings, "\n"); !strings.Contains(got, row.warning) || len(m.from) == 0 {
					t.Errorf("warned: %s; called from %v", got, m.from)
				}
			}, row.option(m))
		})
	}
}

// A reload sets the rates of the pools that its budgets name.
func TestReload_Rates(t *testing.T) {
	t.Parallel()
	pools := func(rate float64, names ...string) *policy.Set {
		c := policy.Config{}
		for _, name := range names {
			ratio := budget.DefaultRatio()
			ratio.MinPerSecond, ratio.Fleet = rate, name
			c.Budgets = append(c.Budgets, policy.BudgetSpec{Name: name, Config: ratio})
		}
		return mustSet(t, c)
	}
	r := mustNew(t, pools(100, "a", "b"), interceptor.WithFleet(new(distant)), quiet)
	if err := r.Reload(pools(7, "a")); err != nil {
		t.Fatal(err)
	}
	if got := r.PoolRates(); !slices.Equal(got, []float64{7, 100}) {
		t.Errorf("%v; want a with 7, and b with 100", got)
	}
}
