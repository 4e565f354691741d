// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	_ "github.com/stagger-go/stagger/admission"
	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// weather is one running storm.
type weather struct {
	*storm
	*findings
	*panics

	retrier *interceptor.Retrier
	ledger  *ledger
	circuit *circuit
	inner   budget.Budget
	server  *testserver.Server
	conns   []*grpc.ClientConn
	most    int
	arrived sync.Map // by call: its first attempt that the server saw
}

// kept is the replay memory of all streams of a storm together.
const kept = 1 << 16

func (s *storm) start(t *testing.T) *weather {
	t.Helper()
	f, by := new(findings), newChance(s.seed)
	panics := &panics{chance: by}
	panics.active.Store(uint64(s.points))
	w := &weather{storm: s, findings: f, panics: panics, inner: s.newBudget(t)}
	w.ledger = &ledger{Budget: w.inner, findings: f, panics: panics}
	w.circuit = &circuit{findings: f, panics: panics}
	w.server = testserver.Start(t, testserver.Keep(0), testserver.Observe(w.seen))
	w.server.On("*", testserver.Func(w.serves))
	p, err := compiled.NewPolicy(s.spec)
	if err != nil {
		t.Fatal(err)
	}
	w.most = p.MaxAttempts()
	w.retrier, err = interceptor.New(s.set(t, s.spec),
		interceptor.WithObserver(listener(panics)), interceptor.WithBudget("", func(string) budget.Budget { return w.ledger }), interceptor.WithMaxReplayBytes(kept),
		interceptor.WithBreaker(func(string, string) interceptor.Gate { return w.circuit }),
		interceptor.WithClassifier(func(_ context.Context, _ string, reply any, _ error) interceptor.Verdict {
			panics.at(atClassifier)
			if m, ok := reply.(*wrapperspb.StringValue); ok && m.GetValue() == "not yet" {
				return interceptor.VerdictNotYet
			}
			return interceptor.VerdictByCode
		}))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.conns = append(w.conns, w.server.Dial(t, append(w.retrier.DialOptions(), soon,
			grpc.WithChainUnaryInterceptor(w.insideUnary), grpc.WithChainStreamInterceptor(w.insideStream))...))
	}
	return w
}

// soon reconnects a lost connection before the calls are over.
var soon = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           grpcbackoff.Config{BaseDelay: 20 * ms, Multiplier: 1.5, MaxDelay: 100 * ms},
	MinConnectTimeout: 100 * ms,
})

// rage reloads policies, changes the mode and restarts the server until ctx ends.
func (w *weather) rage(ctx context.Context, t *testing.T) {
	for round := 0; ctx.Err() == nil; round++ {
		changed := w.spec
		if round%3 == 1 { // admission comes and goes while calls run
			changed.Admission = "NONE"
		}
		if err := w.retrier.Reload(w.set(t, changed)); err != nil {
			w.add("reload: %v", err)
		}
		mode := []policy.Mode{w.mode, policy.ModeObserve, w.mode, policy.ModeOff}[round%4]
		if err := w.retrier.SetMode(interceptor.ModeSwitch{Mode: mode}); err != nil {
			w.add("mode: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.upTo(300*ms) + ms):
		}
		w.server.Down()
		time.Sleep(w.upTo(50*ms) + ms)
		w.server.Up()
	}
}

// check reports what calls have left behind.
func (w *weather) check(t *testing.T) {
	t.Helper()
	w.active.Store(0)
	if n := w.ledger.running.Load(); n != 0 {
		w.add("%d extra attempts have not ended for the budget", n)
	}
	if n := w.circuit.running.Load(); n != 0 {
		w.add("the breaker is not told of %d attempts", n)
	}
	if n := w.retrier.State().Waiting.All(); n != 0 {
		w.add("%d calls wait", n)
	}
	for _, state := range w.retrier.State().Admission {
		if state.Running != 0 {
			w.add("admission counts %d attempts", state.Running)
		}
	}
	if !w.closes {
		w.checkMemory()
	}
}

// checkMemory checks that all replay memory has been released: a stream that needs nearly all of it is retried.
func (w *weather) checkMemory() {
	if err := w.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeEnforce}); err != nil {
		w.add("mode: %v", err)
	}
	p, err := compiled.NewPolicy(spec.Policy{Retry: &spec.Retry{
		MaxAttempts: 5, RetryableStatusCodes: []codes.Code{codes.Unavailable}, Budget: "NONE",
		Backoff: backoff.Config{Initial: ms, Max: ms, Multiplier: 1, Jitter: "NONE"},
	}})
	if err != nil {
		w.add("policy: %v", err)
		return
	}
	const probe = "/proof.Service/Probe"
	bare := w.server.Target()
	conn, err := grpc.NewClient(bare, append(w.server.DialOptions(), w.retrier.DialOptions()...)...)
	if err != nil {
		w.add("dial: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	for range 10 { // the breaker may refuse some
		w.server.On(probe, faults.Play(faults.Receive(0)).Then(testserver.Fail(codes.Unavailable)), faults.Play(faults.Receive(0), faults.SendRaw(encoded("done"))))
		if err = w.probe(conn, probe, interceptor.Policy(p), interceptor.Idempotent()); err == nil {
			return
		}
		time.Sleep(2 * time.Second) // while all of the last responses were long, nothing is retried
	}
	w.add("memory for replay is not given back: %+v", err)
}

func (w *weather) probe(conn *grpc.ClientConn, method string, opts ...grpc.CallOption) error {
	stream, err := conn.NewStream(context.Background(), clientStream.desc(), method, append(opts, grpc.MaxRetryRPCBufferSize(kept))...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", kept-20))); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(new(wrapperspb.StringValue))
}
