// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
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
		if err := r.SetMode(interceptor.ModeSwitch{Mode: mode}); err != nil {
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
		CallEnd:    func(context.Context, interceptor.CallEnd) { m.meddle("Call") },
		Reload:     func(*policy.Set, []string, error) { m.meddle("Reload") },
		ModeChange: func(_, _ interceptor.ModeSwitch) { m.meddle("Mode") },
		Diagnostic: func(d policy.Diagnostic) { m.meddle("Diagnostic " + strings.SplitN(d.Message, ",", 2)[0]) },
	}
}

func TestCallbacksMayUseTheRetrier(t *testing.T) {
	m := &meddler{t: t, from: map[string]int{}}
	play(t, config(plain()), func(t *testing.T, s scene) {
		m.set = mustSet(t, config(plain()))
		s.On("*", down())
		m.retrier, m.conn = s.retrier, s.conn
		_, _ = s.call(t.Context(), get)
		s.On("*", faults.Play(faults.Receive(1), faults.Send(wrapperspb.String("1"))).Then(down()))
		stream := s.open(t, t.Context(), serverStream, interceptor.Resume(func(proto.Message) (proto.Message, bool) {
			m.meddle("Resume")
			return nil, false
		}))
		send(t, stream, "order 7")
		_, _ = receive(stream)
		if err := s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeObserve}); err != nil {
			t.Error(err)
		}
		for _, from := range []string{"CallStart", "Attempt", "Decision", "Call", "Reload", "Mode", "classifier", "Resume", "Sent"} {
			if m.from[from] == 0 {
				t.Errorf("%s was not called; of %v", from, m.from)
			}
		}
	}, interceptor.WithObserver(m.observer()),
		interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
			m.meddle("classifier")
			return interceptor.VerdictByCode
		}))
}

// An observer that hears of the decision for a retry may forbid it: by closing the Retrier, or by its mode. The call ends at once, though it
// has not begun to wait.
func TestCallback_DecisionForbids(t *testing.T) {
	for want, forbid := range map[policy.Reason]func(*interceptor.Retrier){
		policy.ReasonClosed:  func(r *interceptor.Retrier) { r.Close() },
		policy.ReasonModeOff: func(r *interceptor.Retrier) { _ = r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}) },
	} {
		for kind, desc := range callKinds {
			t.Run(fmt.Sprint(want, " ", kind), func(t *testing.T) {
				play(t, config(plain()), func(t *testing.T, s scene) {
					s.On(get, down())
					s.retrier.AddObserver(interceptor.Observer{Decision: func(context.Context, interceptor.Event) { forbid(s.retrier) }})
					if got, want := s.tell(t, desc, get), fmt.Sprintf("[] Unavailable %s [] 0s", want); got != want {
						t.Errorf("%s; want %s", got, want)
					}
				})
			})
		}
	}
}
