// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// callKinds are the kinds of calls; nil is a unary one.
var callKinds = map[string]*grpc.StreamDesc{"unary": nil, "server stream": serverStream, "client stream": clientStream, "bidi": bidiStream}

// exchange makes a call of one message, and returns how it has ended.
func exchange(ctx context.Context, conn *grpc.ClientConn, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) error {
	if desc == nil {
		return conn.Invoke(ctx, method, wrapperspb.String("order 7"), new(wrapperspb.StringValue), opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String("order 7")); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err = receive(stream); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// undeclaredConfig is a config without idempotent methods.
func undeclaredConfig(specs ...policy.Spec) policy.Config {
	retry := plain()
	retry.Codes = append(retry.Codes, codes.ResourceExhausted)
	c := policy.Config{Idempotency: policy.IdempotencyNone, Methods: []policy.MethodConfig{{Names: []string{"/"}, Spec: policy.Spec{Retry: &retry}}}}
	for _, s := range specs {
		c.Methods[0].Spec = s
	}
	return c
}

func hedging() policy.Spec {
	return policy.Spec{Hedge: &policy.HedgeSpec{
		MaxAttempts: 4, Delay: 100 * ms, Budget: policy.NoBudget, NonFatal: []codes.Code{codes.Unavailable, codes.ResourceExhausted},
	}}
}

// door refuses calls of a server, and counts.
type door struct {
	refuses  int64 // the first so many calls
	asked    atomic.Int64
	ran      atomic.Int64 // handlers
	released atomic.Int64
}

var errFull = status.Error(codes.ResourceExhausted, "the queue is full")

func (d *door) take(context.Context, string) (func(), error) {
	if d.asked.Add(1) <= d.refuses {
		return nil, errFull
	}
	return func() { d.released.Add(1) }, nil
}

// behind starts a server whose calls pass the door.
func (d *door) behind(t *testing.T, r *interceptor.Retrier, unary bool) *testserver.Server {
	t.Helper()
	take := interceptor.Refuse(d.take)
	options := []testserver.Option{testserver.ServerOptions(r.ServerOptions(take)...)}
	if unary {
		options = append(options, testserver.Register(unaryOrders(func(context.Context) error {
			d.ran.Add(1)
			return nil
		})))
	}
	srv := testserver.Start(t, options...)
	srv.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
		d.ran.Add(1)
		return testserver.OK(wrapperspb.String("done"))
	}))
	return srv
}

// Calls that are not idempotent are retried if the server has refused them before their handlers.
func TestRefuse(t *testing.T) {
	t.Parallel()
	timed := plain()
	timed.Codes, timed.PerAttemptTimeout = []codes.Code{codes.ResourceExhausted}, 100*ms
	for policyName, c := range map[string]policy.Config{
		"retries": undeclaredConfig(), "hedges": undeclaredConfig(hedging()), "timeouts": undeclaredConfig(policy.Spec{Retry: &timed}),
	} {
		for kind, desc := range callKinds {
			for _, unaryHandler := range []bool{false, true} {
				if unaryHandler && desc != nil {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %v", policyName, kind, unaryHandler), func(t *testing.T) {
					play(t, c, func(t *testing.T, s scene) {
						d := &door{refuses: 2}
						conn := d.behind(t, s.retrier, unaryHandler).Dial(t, s.retrier.DialOptions()...)
						if err := exchange(t.Context(), conn, desc, get); err != nil {
							t.Error(err)
						}
						synctest.Wait()
						if asked, ran, released := d.asked.Load(), d.ran.Load(), d.released.Load(); asked != 3 || ran != 1 || released != 1 {
							t.Errorf("%d requests, %d handlers, %d released; want 3, 1, 1", asked, ran, released)
						}
					})
				})
			}
		}
	}
}

// A caller that is gone gets no trailer. That is not a reason for a warning.
func TestRefuse_CallerGone(t *testing.T) {
	t.Parallel()
	var j journal
	synctest.Test(t, func(t *testing.T) {
		retrier := must.Get(interceptor.New(mustSet(t, undeclaredConfig()), withJournal(&j)))(t)
		defer retrier.Close()
		srv := testserver.Start(t, testserver.Register(unaryOrders(func(context.Context) error { return nil })),
			testserver.ServerOptions(retrier.ServerOptions(interceptor.Refuse(func(ctx context.Context, _ string) (func(), error) {
				<-ctx.Done()
				return nil, status.FromContextError(ctx.Err()).Err()
			}))...))
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		if err := exchange(ctx, srv.Dial(t), nil, get); status.Code(err) != codes.DeadlineExceeded {
			t.Error(err)
		}
		synctest.Wait()
	})
	if len(j.warnings) != 0 {
		t.Errorf("warned: %q", j.warnings)
	}
}

// A refusal is a failure for the budget, and does not hand its permit on.
func TestRefuse_Budget(t *testing.T) {
	c := undeclaredConfig()
	c.Methods[0].Retry.Budget = "own"
	c.Budgets = []policy.BudgetSpec{{Name: "own", Config: budget.RefundConfig{Capacity: 2, RetryCost: 1, TimeoutCost: 1, Success: 1}}}
	play(t, c, func(t *testing.T, s scene) {
		d := &door{refuses: 100}
		conn := d.behind(t, s.retrier, false).Dial(t, s.retrier.DialOptions()...)
		err := exchange(t.Context(), conn, nil, get)
		if reasonOf(err) != policy.ReasonBudgetExhausted || d.asked.Load() != 3 {
			t.Errorf("%v (%s) after %d requests; want the budget to end it after 3", err, reasonOf(err), d.asked.Load())
		}
	})
}

// A server's claim that it did not process a call counts only without evidence against it.
func TestRefuse_NotBelieved(t *testing.T) {
	t.Parallel()
	fails := testserver.Fail(codes.ResourceExhausted)
	says := func(values ...string) testserver.Step {
		return fails.Trailer(metadata.MD{refusedTrailer: values})
	}
	deny := undeclaredConfig()
	deny.RefusedRetry = new(false)
	for name, row := range map[string]struct {
		config policy.Config
		step   testserver.Step
		reason policy.Reason
		only   string // of the kinds; "": all
	}{
		"nothing is said":            {step: fails},
		"headers came":               {step: says("0 " + get).Header(metadata.Pairs("x", "y"))},
		"a message came":             {step: moves.Play(moves.Receive(1), say("a")).Then(says("0 " + get)), reason: policy.ReasonCommitted},
		"of another method":          {step: says("0 " + create)},
		"of another attempt":         {step: says("1 " + get)},
		"of no attempt":              {step: says(get)},
		"an empty word":              {step: says("")},
		"twice":                      {step: says("0 "+get, "0 "+get)},
		"and a handler says it ran":  {step: says("0 "+get, "no")},
		"the policy does not listen": {config: deny, step: says("0 " + get)},
		"the call has succeeded":     {step: testserver.OK(wrapperspb.String("a")).Trailer(metadata.Pairs(refusedTrailer, "0 "+get)), reason: policy.ReasonSucceeded},
	} {
		for kind, desc := range callKinds {
			for _, hedged := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, %v", name, kind, hedged), func(t *testing.T) {
					c := row.config
					if len(c.Methods) == 0 {
						c = undeclaredConfig()
					}
					if hedged {
						c.Methods = []policy.MethodConfig{{Names: c.Methods[0].Names, Spec: hedging()}}
						c.Methods[0].Hedge.Delay = 10 * 60 * 1000 * ms
					}
					play(t, c, func(t *testing.T, s scene) {
						s.On("*", row.step)
						err := exchange(t.Context(), s.conn, desc, get)
						synctest.Wait()
						want := row.reason
						if want == "" || want == policy.ReasonCommitted && (desc == nil || !desc.ServerStreams) {
							want = policy.ReasonNotIdempotent
						}
						if n := s.Count(get); n != 1 {
							t.Errorf("%d requests; want 1", n)
						}
						if got := s.calls[0].Reason; got != want {
							t.Errorf("%v: %s; want %s", err, got, want)
						}
					})
				})
			}
		}
	}
}

// A service in the middle has charged before its own call is refused, and passes the refusal on.
func TestRefuse_Middle(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		guarded bool   // the middle has the server interceptors
		below   string // the method that it calls
		unary   bool   // its handler
		charges bool   // else it is a proxy
		charged int64
		ends    policy.Reason
	}{
		"another method":                             {below: create, charges: true, charged: 1, ends: policy.ReasonNotIdempotent},
		"another method, guarded":                    {below: create, charges: true, guarded: true, charged: 1, ends: policy.ReasonNotIdempotent},
		"the same method, guarded":                   {below: get, charges: true, guarded: true, charged: 1, ends: policy.ReasonNotIdempotent},
		"the same method, guarded, unary":            {below: get, charges: true, guarded: true, unary: true, charged: 1, ends: policy.ReasonNotIdempotent},
		"a proxy, which has done nothing of its own": {below: get, charged: 0, ends: policy.ReasonSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, undeclaredConfig(), func(t *testing.T, s scene) {
				d := &door{refuses: 1}
				once := mustNew(t, mustSet(t, policy.Config{}), quiet)
				below := d.behind(t, once, false).Dial(t, once.DialOptions()...)
				var charged atomic.Int64
				pass := func(ctx context.Context) error {
					if row.charges {
						charged.Add(1)
					}
					var trailer metadata.MD
					err := exchange(ctx, below, nil, row.below, grpc.Trailer(&trailer))
					_ = grpc.SetTrailer(ctx, trailer)
					return err
				}
				var options []testserver.Option
				if row.guarded {
					options = append(options, testserver.ServerOptions(once.ServerOptions()...))
				}
				if row.unary {
					options = append(options, testserver.Register(unaryOrders(pass)))
				}
				middle := testserver.Start(t, options...)
				middle.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step { return answer(pass(ctx)) }))
				err := exchange(t.Context(), middle.Dial(t, s.retrier.DialOptions()...), nil, get)
				if got := s.calls[0].Reason; got != row.ends || charged.Load() != row.charged {
					t.Errorf("%v: %s, charged %d times; want %s, %d", err, got, charged.Load(), row.ends, row.charged)
				}
			})
		})
	}
}

// A proxy has sent a call that was processed, and then once more, which is refused.
func TestRefuse_ProxyThatRetries(t *testing.T) {
	t.Parallel()
	for name, tells := range map[string]metadata.MD{
		"gRPC's":  metadata.Pairs("grpc-previous-rpc-attempts", "1"),
		"Envoy's": metadata.Pairs("x-envoy-attempt-count", "2"),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, undeclaredConfig(), func(t *testing.T, s scene) {
				var charged atomic.Int64
				take := func(context.Context, string) (func(), error) {
					if charged.Load() > 0 {
						return nil, errFull
					}
					return nil, nil
				}
				server := testserver.Start(t, testserver.ServerOptions(
					s.retrier.ServerOptions(interceptor.Refuse(take))...))
				server.On("*", testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
					charged.Add(1)
					return down()
				}))
				below := server.Dial(t)
				proxy := testserver.Start(t)
				proxy.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
					if err := exchange(ctx, below, nil, get); err == nil {
						t.Error("the first attempt has succeeded")
					}
					var trailer metadata.MD
					err := exchange(metadata.NewOutgoingContext(ctx, tells), below, nil, get, grpc.Trailer(&trailer))
					_ = grpc.SetTrailer(ctx, trailer)
					return answer(err)
				}))
				err := exchange(t.Context(), proxy.Dial(t, s.retrier.DialOptions()...), nil, get)
				if reasonOf(err) != policy.ReasonNotIdempotent || charged.Load() != 1 || proxy.Count(get) != 1 {
					t.Errorf("%v (%s), charged %d times, %d requests at the proxy; want one of each", err, reasonOf(err), charged.Load(), proxy.Count(get))
				}
			})
		})
	}
}

// gRPC itself, or an inner interceptor, has made two requests for one attempt, and the second was refused.
func TestRefuse_RetriedInside(t *testing.T) {
	t.Parallel()
	again := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		_ = invoke(ctx, method, req, reply, cc, opts...)
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	for name, options := range map[string]func(*interceptor.Retrier) []grpc.DialOption{
		"by gRPC": func(r *interceptor.Retrier) []grpc.DialOption {
			return []grpc.DialOption{grpc.WithUnaryInterceptor(r.Unary()), grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
				"maxAttempts": 2, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)}
		},
		"by an interceptor": func(r *interceptor.Retrier) []grpc.DialOption {
			return append(r.DialOptions(), grpc.WithChainUnaryInterceptor(again))
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, undeclaredConfig(), func(t *testing.T, s scene) {
				s.On(get, down(), testserver.Fail(codes.ResourceExhausted).Trailer(metadata.Pairs(refusedTrailer, "0 "+get)),
					testserver.OK(wrapperspb.String("charged again")))
				err := exchange(t.Context(), s.Dial(t, options(s.retrier)...), nil, get)
				if reasonOf(err) != policy.ReasonNotIdempotent || s.Count(get) != 2 {
					t.Errorf("%v (%s) after %d requests; want the 2 of the first attempt", err, reasonOf(err), s.Count(get))
				}
			})
		})
	}
}

// The policy knows a server that is not ours, by code and ErrorInfo; a classifier knows what it likes.
func TestNotProcessed(t *testing.T) {
	t.Parallel()
	c := undeclaredConfig()
	c.Methods[0].Names = []string{"/acme.orders.v1.OrderService/GetOrder"}
	c.Methods[0].Retry.PerCode = []policy.CodeSpec{{
		Codes: []codes.Code{codes.ResourceExhausted}, ErrorDomain: "gateway.example", ErrorReason: "SHED", NotProcessed: true,
	}}
	shed := must.Get(status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.ErrorInfo{Domain: "gateway.example", Reason: "SHED"}))(t)
	knows := func(_ context.Context, _ string, _ any, err error) interceptor.Verdict {
		if status.Code(err) == codes.FailedPrecondition {
			return interceptor.VerdictNotProcessed
		}
		return interceptor.VerdictByCode
	}
	for name, row := range map[string]struct {
		first    testserver.Step
		requests int
	}{
		"by the policy":                    {testserver.FailStatus(shed), 2},
		"by the policy, with headers":      {testserver.FailStatus(shed).Header(metadata.Pairs("x", "y")), 1},
		"by the classifier":                {testserver.Fail(codes.FailedPrecondition), 2},
		"by the classifier, with headers":  {testserver.Fail(codes.FailedPrecondition).Header(metadata.Pairs("x", "y")), 1},
		"by neither":                       {testserver.Fail(codes.ResourceExhausted), 1},
		"by the policy, in another's name": {testserver.Fail(codes.Unavailable), 1},
	} {
		for kind, desc := range callKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, row.first, testserver.OK(wrapperspb.String("done")))
					err := exchange(t.Context(), s.conn, desc, get)
					if n := s.Count(get); n != row.requests || (err == nil) != (n == 2) {
						t.Errorf("%v after %d requests; want %d", err, n, row.requests)
					}
				}, interceptor.WithClassifier(knows))
			})
		}
	}
}
