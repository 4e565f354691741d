// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// One layer retries: each client of A → B → C → D makes up to 3 attempts, and D is out. docs/chains.md and its picture have these
// numbers.
func TestChain_Outage(t *testing.T) {
	t.Parallel()
	const once, all = 3, 27
	shown := string(testkit.Must(os.ReadFile("../docs/chains.md"))(t)) + string(testkit.Must(os.ReadFile("../docs/diagrams/chain.svg"))(t))
	for _, want := range []string{
		fmt.Sprintf(`\n\| on every hop[^|]* \| %d \|\n\|[^|]* \| 9 \|\n\| nowhere \| %d \|\n`, once, all),
		fmt.Sprintf("`SUPPRESS`[^.]* %d requests[^.]* 11\\.", all),
		fmt.Sprintf(">[^<]* up to 3 attempts: %d requests ", all),
		fmt.Sprintf(">With stagger[^<]*: %d requests", once),
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("docs/chains.md and docs/diagrams/chain.svg have no %s", want)
		}
	}
	for _, row := range []struct {
		name string
		chain
		want int // requests at D for one call of the user
	}{
		{"no service has the interceptor", chain{}, all},
		{"all services that call others have it", chain{guards: "BC"}, once},
		{"only C has it: B leaves its retries, and A does not know", chain{guards: "C"}, 9},
		{"only B has it: B and C retry, and A does not", chain{guards: "B"}, 9},
		{"no service has the interceptor, SUPPRESS", chain{retry: three("SUPPRESS")}, 11},
		{"A is plain gRPC with a retryPolicy", chain{guards: "BC", grpcs: "A"}, once},
		{"A is plain gRPC with a retryPolicy, none has it", chain{grpcs: "A"}, 27},
		{"A is plain gRPC with a retryPolicy, only C has it", chain{guards: "C", grpcs: "A"}, 9},
		{"B is plain gRPC: it obeys C, and does not tell A", chain{guards: "BC", grpcs: "B"}, 9},
		{"C is plain gRPC: it does not tell B, which tells A", chain{guards: "BC", grpcs: "C"}, 9},
	} {
		if row.retry.MaxAttempts == 0 {
			row.retry = three("ALLOW")
		}
		for _, unary := range []bool{true, false} {
			row.unary = unary
			t.Run(fmt.Sprintf("%s, unary %v", row.name, unary), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := row.start(t)
					s.d.On(get, down())
					if err := s.call(t); status.Code(err) != codes.Unavailable {
						t.Errorf("error %v; want that of D", err)
					}
					if got := s.d.Count(get); got != row.want {
						t.Errorf("%d requests at D; want %d", got, row.want)
					}
				})
			})
		}
	}
}

// If B or C itself fails, no call has given up: the layer above retries it.
func TestChain_OwnFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := chain{guards: "BC", retry: three("ALLOW"), fails: 0.3}.start(t)
		for range 20 {
			if err := s.call(t); err != nil {
				t.Fatal(err)
			}
		}
		if own := s.b.Count(get) + s.c.Count(get) - 40; own < 10 {
			t.Errorf("%d failures of B's and C's own; the test wants more", own)
		}
	})
}

// The pushback that a service sends upstream when it fails with UNAVAILABLE, after different calls of its own.
func TestChain_Trailer(t *testing.T) {
	t.Parallel()
	fails := status.Error(codes.Unavailable, "as the handler says")
	pass := func(err error) error { return err }
	var (
		gaveUp  = []string{"-1"}
		nothing []string
	)
	for _, row := range []struct {
		name   string
		script []testserver.Step
		method string
		opts   []grpc.CallOption
		answer func(error) error // the handler's
		want   []string
	}{
		{"its attempts are exhausted", []testserver.Step{down()}, get, nil, pass, gaveUp},
		{"so they are, and it fails in its own words", []testserver.Step{down()}, get, nil, func(error) error { return fails }, gaveUp},
		{"it gave up, and does without", []testserver.Step{down()}, get, nil, func(error) error { return nil }, nothing},
		{"its call succeeded after retries", []testserver.Step{down().Times(2), text("a")}, get, nil, func(error) error { return fails }, nothing},
		{"its call switched retries off", []testserver.Step{down()}, get, []grpc.CallOption{interceptor.Disable()}, pass, nothing},
		{"its call was optional", []testserver.Step{down()}, get, []grpc.CallOption{interceptor.Optional()}, func(error) error { return fails }, nothing},
		{"its call was optional, and the server below forbade more", []testserver.Step{down().Pushback("-1")}, get, []grpc.CallOption{interceptor.Optional()}, pass, nothing},
	} {
		for _, unary := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, unary %v", row.name, unary), func(t *testing.T) {
				play(t, config(three("ALLOW")), func(t *testing.T, s scene) {
					s.On("*", row.script...)
					got, err := s.trailerAbove(t, unary, func(ctx context.Context) error {
						_, err := s.call(ctx, row.method, row.opts...)
						return row.answer(err)
					})
					if fmt.Sprint(got) != fmt.Sprint(row.want) {
						t.Errorf("trailer %v with %v; want %v", got, err, row.want)
					}
				})
			})
		}
	}
}

// A handler whose own calls are of several methods, or several tries. Each line is what a call asks for and how the server answers it.
func TestChain_SeveralCalls(t *testing.T) {
	t.Parallel()
	const list = "/acme.orders.v1.OrderService/ListOrders"
	type made struct {
		method string
		up     bool
		opts   []grpc.CallOption
	}
	optional := []grpc.CallOption{interceptor.Optional()}
	c := config(three("ALLOW"))
	c.Methods[0].Names = append(c.Methods[0].Names, list)
	for name, row := range map[string]struct {
		calls []made
		want  string
	}{
		"a second try succeeds":                      {[]made{{get, false, nil}, {get, true, nil}}, "[]"},
		"a second try, with one attempt":             {[]made{{get, false, nil}, {get, true, []grpc.CallOption{interceptor.MaxAttempts(1)}}}, "[]"},
		"a second try fails as well":                 {[]made{{get, false, nil}, {get, false, nil}}, "[-1]"},
		"another method succeeds":                    {[]made{{get, false, nil}, {list, true, nil}}, "[-1]"},
		"an earlier call of the method succeeded":    {[]made{{get, true, nil}, {get, false, nil}}, "[-1]"},
		"two methods, and one succeeds later":        {[]made{{get, false, nil}, {list, false, nil}, {get, true, nil}}, "[-1]"},
		"two methods, and both succeed later":        {[]made{{get, false, nil}, {list, false, nil}, {list, true, nil}, {get, true, nil}}, "[]"},
		"an optional call, and one that is not":      {[]made{{list, false, optional}, {get, false, nil}}, "[-1]"},
		"an optional call of a method after another": {[]made{{get, false, nil}, {get, false, optional}}, "[-1]"},
		"an optional second try succeeds":            {[]made{{get, false, nil}, {get, true, optional}}, "[]"},
	} {
		for kind, desc := range callKinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					got, err := s.trailerAbove(t, desc == nil, func(ctx context.Context) error {
						for _, call := range row.calls {
							s.On(call.method, down())
							if call.up {
								s.On(call.method, text("a"))
							}
							if err := exchange(ctx, s.conn, desc, call.method, call.opts...); (err == nil) != call.up {
								t.Errorf("%s: %v", call.method, err)
							}
						}
						return status.Error(codes.Unavailable, "for a reason of its own")
					})
					if fmt.Sprint(got) != row.want || err == nil {
						t.Errorf("trailer %v with %v; want %s", got, err, row.want)
					}
				})
			})
		}
	}
}

// A handler that asks several shards in parallel, of which one gives up after 300 ms. The others are answered then or later.
func TestChain_Shards(t *testing.T) {
	t.Parallel()
	own := func(first error) error { return first }
	wrapped := func(first error) error { return fmt.Errorf("shard 0: %w", first) }
	other := func(error) error { return status.Error(codes.Unavailable, "for a reason of its own") }
	for name, row := range map[string]struct {
		starts []time.Duration // of the other shards, which take 400 ms each
		answer func(error) error
		want   string
	}{
		"in parallel":                         {[]time.Duration{0, 0}, own, "[-1]"},
		"in parallel, wrapped":                {[]time.Duration{0, 0}, wrapped, "[-1]"},
		"in parallel, in its own words":       {[]time.Duration{0, 0}, other, "[-1]"},
		"some later":                          {[]time.Duration{0, 350 * ms}, own, "[-1]"},
		"some later, wrapped":                 {[]time.Duration{0, 350 * ms}, wrapped, "[-1]"},
		"some later, and another failure":     {[]time.Duration{0, 350 * ms}, other, "[]"},
		"some later, and the handler goes on": {[]time.Duration{0, 350 * ms}, func(error) error { return nil }, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(three("ALLOW")), func(t *testing.T, s scene) {
				s.On(get, down()) // 100 and 200 ms between its attempts
				others := testserver.Start(t)
				others.On(get, text("a").Delay(400*ms))
				conn := others.Dial(t, s.retrier.DialOptions()...)
				got, err := s.trailerAbove(t, true, func(ctx context.Context) error {
					var shards sync.WaitGroup
					for _, start := range row.starts {
						shards.Go(func() {
							time.Sleep(start)
							if err := exchange(ctx, conn, nil, get); err != nil {
								t.Error(err)
							}
						})
					}
					_, first := s.call(ctx, get)
					shards.Wait()
					return row.answer(first)
				})
				if fmt.Sprint(got) != row.want {
					t.Errorf("trailer %v with %v; want %s", got, err, row.want)
				}
			})
		})
	}
}

// A second try of a stream without a policy takes the mark back, too, if there is no observer.
func TestChain_SecondTryWithoutPolicy(t *testing.T) {
	t.Parallel()
	for kind, desc := range callKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := mustNew(t, mustParse(t, "maxWaiting: 3"), quiet)
				s := scene{Server: testserver.Start(t), retrier: r}
				s.conn = s.Dial(t, r.DialOptions()...)
				s.On(get, down().Pushback("-1").Times(1), text("a"))
				got, err := s.trailerAbove(t, true, func(ctx context.Context) error {
					if err := exchange(ctx, s.conn, desc, get); err == nil {
						t.Error("the first try succeeds")
					}
					testkit.NoError(t, exchange(ctx, s.conn, desc, get))
					return status.Error(codes.Unavailable, "for a reason of its own")
				})
				if len(got) != 0 || err == nil {
					t.Errorf("trailer %v with %v; want none", got, err)
				}
			})
		})
	}
}

// A parallel branch that wins does not take the mark of the other one back: that may be another shard, which the handler needs.
func TestChain_ParallelBranch(t *testing.T) {
	t.Parallel()
	for _, unary := range []bool{true, false} {
		t.Run(fmt.Sprint("unary ", unary), func(t *testing.T) {
			play(t, config(three("ALLOW")), func(t *testing.T, s scene) {
				s.On(get, text("won").Delay(time.Minute).Times(1), down())
				got, err := s.trailerAbove(t, unary, func(ctx context.Context) error {
					var branches sync.WaitGroup
					for range 2 {
						branches.Go(func() { _ = ask(ctx, s.conn, unary) })
						time.Sleep(ms)
					}
					branches.Wait()
					return status.Error(codes.Unavailable, "for a reason of its own")
				})
				if fmt.Sprint(got) != "[-1]" || err == nil {
					t.Errorf("trailer %v with %v; want -1", got, err)
				}
			})
		})
	}
}

// A connection whose calls are all optional.
func TestChain_OptionalConnection(t *testing.T) {
	play(t, config(three("ALLOW")), func(t *testing.T, s scene) {
		s.On(get, down())
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultCallOptions(interceptor.Optional()))...)
		got, err := s.trailerAbove(t, true, func(ctx context.Context) error { return ask(ctx, conn, true) })
		if len(got) != 0 || status.Code(err) != codes.Unavailable || s.Count(get) != 3 {
			t.Errorf("trailer %v with %v after %d requests; want none after 3", got, err, s.Count(get))
		}
	})
}

// A service in the middle that has no policy for the method passes on that the next one has given up: D gets three requests.
func TestChain_MiddleWithoutPolicy(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file string // of B
		opts []grpc.CallOption
	}{
		"no policy":    {"maxWaiting: 3", nil},
		"another code": {strings.ReplaceAll(entryOf(noTimeout), "UNAVAILABLE", "ABORTED"), nil},
		"one attempt":  {entryOf(noTimeout), []grpc.CallOption{interceptor.MaxAttempts(1)}},
	} {
		for kind, desc := range callKinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := testserver.Start(t)
					d.On(get, down())
					ofAandC := chain{retry: three("ALLOW"), guards: "BC"}
					c := ofAandC.serve(t, "C", ofAandC.dial(t, "C", d))
					r := mustNew(t, mustParse(t, row.file), quiet)
					toC := c.Dial(t, r.DialOptions()...)
					b := testserver.Start(t, testserver.ServerOptions(r.ServerOptions()...))
					b.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
						return answer(exchange(ctx, toC, desc, get, row.opts...))
					}))
					err := exchange(t.Context(), ofAandC.dial(t, "A", b), desc, get)
					if status.Code(err) != codes.Unavailable || d.Count(get) != 3 {
						t.Errorf("%v, %d requests at D; want 3", err, d.Count(get))
					}
				})
			})
		}
	}
}

// However a handler words the error of its call, the last service gets three requests.
func TestChain_TranslatedErrors(t *testing.T) {
	t.Parallel()
	for name, translate := range map[string]func(error) error{
		"as it is":      func(err error) error { return err },
		"wrapped":       func(err error) error { return fmt.Errorf("orders: %w", err) },
		"a new status":  func(err error) error { return status.Errorf(codes.Unavailable, "orders: %v", err) },
		"a new message": func(error) error { return status.Error(codes.Unavailable, "orders are not there") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := chain{guards: "BC", retry: three("ALLOW"), unary: true, translate: translate}.start(t)
				s.d.On(get, down())
				if err := s.call(t); status.Code(err) != codes.Unavailable || s.d.Count(get) != 3 {
					t.Errorf("%v, %d requests at D; want 3", err, s.d.Count(get))
				}
			})
		})
	}
}

// A handler that panics after its call gave up fails as well: an outer interceptor recovers.
func TestChain_Panic(t *testing.T) {
	t.Parallel()
	failed := func(err *error) {
		if recover() != nil {
			*err = status.Error(codes.Unavailable, "recovered")
		}
	}
	recovers := testserver.ServerOptions(
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (_ any, err error) {
			defer failed(&err)
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			defer failed(&err)
			return handle(srv, stream)
		}))
	for name, row := range map[string]struct {
		step testserver.Step
		want string
	}{"it gave up": {down(), "[-1]"}, "it succeeded": {text("a"), "[]"}} {
		for _, unary := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, unary %v", name, unary), func(t *testing.T) {
				play(t, config(three("ALLOW")), func(t *testing.T, s scene) {
					s.On("*", row.step)
					got, err := s.trailerAbove(t, unary, func(ctx context.Context) error {
						_, _ = s.call(ctx, get)
						panic("a bug")
					}, recovers)
					if fmt.Sprint(got) != row.want || status.Code(err) != codes.Unavailable {
						t.Errorf("trailer %v with %v; want %s", got, err, row.want)
					}
				})
			})
		}
	}
}

// trailerAbove makes a service with the interceptor handle a call, and returns the pushback in its answer.
func (s scene) trailerAbove(t *testing.T, unary bool, handle func(ctx context.Context) error, options ...testserver.Option) ([]string, error) {
	t.Helper()
	options = append(options, testserver.ServerOptions(s.retrier.ServerOptions()...))
	if unary {
		options = append(options, testserver.Register(unaryOrders(handle)))
	}
	srv := testserver.Start(t, options...)
	srv.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		return answer(handle(ctx))
	}))
	var trailer metadata.MD
	err := srv.Dial(t).Invoke(t.Context(), get, new(wrapperspb.StringValue), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
	return trailer.Get(decision.PushbackTrailer), err
}

// chain describes four services: A, called by the user, calls B, which calls C, which calls D.
type chain struct {
	unary  bool       // B and C have unary handlers; streams otherwise
	guards string     // of "BC": servers with the Retrier's interceptor
	grpcs  string     // of "ABC": clients that retry by gRPC's own policy, as often as the Retrier
	retry  spec.Retry // of the other clients
	fails  float64    // how often B and C fail by themselves, 0 to 1; how D does, its script says

	translate func(error) error // of the unary handlers of B and C; nil: they pass errors on
}

// three is the policy of most chains: 3 attempts after UNAVAILABLE, and no budget.
func three(rule string) spec.Retry {
	retry := plain()
	retry.MaxAttempts, retry.Chain = 3, rule
	return retry
}

// services are a running chain.
type services struct {
	b, c, d *testserver.Server
	user    *grpc.ClientConn // of A, to B
	unary   bool
}

// start starts the services, with a separate Retrier for each client.
func (c chain) start(t *testing.T) services {
	t.Helper()
	s := services{d: testserver.Start(t), unary: c.unary}
	s.c = c.serve(t, "C", c.dial(t, "C", s.d))
	s.b = c.serve(t, "B", c.dial(t, "B", s.c))
	s.user = c.dial(t, "A", s.b)
	return s
}

const ownRetries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s",
	"maxBackoff": "60s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// dial connects a service to the next.
func (c chain) dial(t *testing.T, name string, to *testserver.Server) *grpc.ClientConn {
	t.Helper()
	if strings.Contains(c.grpcs, name) {
		return to.Dial(t, grpc.WithDefaultServiceConfig(ownRetries))
	}
	r := mustNew(t, mustSet(t, config(c.retry)), quiet, interceptor.WithRandom(func() float64 { return 0.5 }))
	return to.Dial(t, r.DialOptions()...)
}

// serve starts a service that answers every call with what the next one answers.
func (c chain) serve(t *testing.T, name string, next *grpc.ClientConn) *testserver.Server {
	t.Helper()
	var options []testserver.Option
	if strings.Contains(c.guards, name) {
		r := mustNew(t, mustSet(t, spec.Config{}))
		options = append(options, testserver.ServerOptions(r.ServerOptions()...))
	}
	if c.unary {
		return testserver.Start(t, append(options, testserver.Register(unaryOrders(func(ctx context.Context) error {
			err := ask(ctx, next, true)
			if err != nil && c.translate != nil {
				err = c.translate(err)
			}
			return err
		})))...)
	}
	srv := testserver.Start(t, options...)
	srv.On(get, testserver.Func(func(ctx context.Context, a testserver.Attempt) testserver.Step {
		if rand.New(rand.NewPCG(uint64(name[0]), uint64(a.Number))).Float64() < c.fails {
			return testserver.Fail(codes.Unavailable, name+" failed by itself")
		}
		return answer(ask(ctx, next, false))
	}))
	return srv
}

// answer returns the answer of a service whose own call ended with err.
func answer(err error) testserver.Step {
	if err != nil {
		return testserver.FailStatus(status.Convert(err))
	}
	return text("done")
}

// ask makes a call to the next service, as a unary call or as a server stream.
func ask(ctx context.Context, next *grpc.ClientConn, unary bool, opts ...grpc.CallOption) error {
	kind := serverStream
	if unary {
		kind = nil
	}
	return exchange(ctx, next, kind, get, opts...)
}

// call is the user's.
func (s services) call(t *testing.T, opts ...grpc.CallOption) error {
	t.Helper()
	return ask(t.Context(), s.user, s.unary, opts...)
}

// unaryOrders is the order service with a unary GetOrder, as generated code would register it.
func unaryOrders(handle func(ctx context.Context) error) func(grpc.ServiceRegistrar) {
	method := grpc.MethodDesc{
		MethodName: "GetOrder",
		Handler: func(srv any, ctx context.Context, dec func(any) error, icpt grpc.UnaryServerInterceptor) (any, error) {
			order := new(wrapperspb.StringValue)
			if err := dec(order); err != nil {
				return nil, err
			}
			inner := func(ctx context.Context, _ any) (any, error) { return order, handle(ctx) }
			if icpt == nil {
				return inner(ctx, order)
			}
			return icpt(ctx, order, &grpc.UnaryServerInfo{Server: srv, FullMethod: get}, inner)
		},
	}
	desc := grpc.ServiceDesc{ServiceName: "acme.orders.v1.OrderService", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{method}}
	return func(r grpc.ServiceRegistrar) { r.RegisterService(&desc, nil) }
}

// slowly is how many requests reach D for each call of the user, when D never answers, each service sends
// another attempt after a second, and all servers have the interceptor.
func slowly(t *testing.T, rule string, budget string, calls int) (atD float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		retry := three(rule)
		retry.Budget, retry.PerAttemptTimeout = budget, time.Second
		s := chain{guards: "BC", retry: retry, unary: true}.start(t)
		s.d.On(get, text(""))
		for range 8 { // so that each service knows that the next one is fast
			testkit.NoError(t, ask(t.Context(), s.user, true))
		}
		s.d.Reset()
		s.d.On(get, testserver.Hang())
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if err := ask(ctx, s.user, true); err == nil {
					t.Error("a call is answered")
				}
			})
			time.Sleep(20 * ms)
		}
		wg.Wait()
		atD = float64(s.d.Count(get)) / float64(calls)
	})
	return atD
}

// A service whose own call is slow has not given up, and so sends no pushback: only the rule for chains, and
// above all the budgets, prevent 27 requests at a hanging server.
func TestChain_SlowEnd(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for rule, want := range map[string]float64{"ALLOW": 27, "SUPPRESS": 11} {
		if got := slowly(t, rule, "NONE", 3); got != want {
			t.Errorf("%v without budgets: %v requests at D for a call; want %v", rule, got, want)
		}
	}
	if got := slowly(t, "ALLOW", "", 1000); got > 1.1 {
		t.Errorf("with the default budgets: %v requests at D for a call; want at most 1.1", got)
	}
}

// A service that leaves retries to its upstream caller must not send it pushback.
func TestChain_LeftToCaller(t *testing.T) {
	play(t, config(three("SUPPRESS")), func(t *testing.T, s scene) {
		s.On(get, down())
		srv := testserver.Start(t, testserver.ServerOptions(s.retrier.ServerOptions()...))
		srv.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
			return answer(ask(ctx, s.conn, false))
		}))
		for previous, want := range map[string]string{"": "[-1] after 3", "1": "[] after 1", "2": "[] after 1", "no number": "[-1] after 3"} {
			s.Reset()
			ctx := t.Context()
			if previous != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "grpc-previous-rpc-attempts", previous)
			}
			var trailer metadata.MD
			err := srv.Dial(t).Invoke(ctx, get, wrapperspb.String("a"), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
			got := fmt.Sprintf("%v after %d", trailer.Get(decision.PushbackTrailer), s.Count(get))
			if status.Code(err) != codes.Unavailable || got != want {
				t.Errorf("in attempt %q: %v, %s; want %s", previous, err, got, want)
			}
		}
	})
}

// A streaming handler that sends a message has got over the calls that gave up before: what ends its stream later doesn't forbid to resume.
func TestChain_StreamGoesOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		goesOn bool
		want   string
	}{
		"it sends messages": {true, "[1 2 3]"},
		"it fails at once":  {false, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(three("ALLOW")), func(t *testing.T, s scene) {
				s.On(create, down().Times(3), text("a"))
				srv := testserver.Start(t, testserver.ServerOptions(s.retrier.ServerOptions()...))
				next, streams := s.conn, 0
				srv.On(get, testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
					streams++
					if streams > 1 {
						return faults.Play(faults.Receive(1), say("3"))
					}
					_ = next.Invoke(ctx, create, new(wrapperspb.StringValue), new(wrapperspb.StringValue), interceptor.Idempotent())
					if !row.goesOn {
						return down()
					}
					return faults.Play(faults.Receive(1), say("1"), faults.Pause(5*time.Hour), say("2")).Then(down())
				}))
				s.conn = srv.Dial(t, s.retrier.DialOptions()...)
				stream := s.open(t, t.Context(), serverStream, interceptor.Resume(after))
				send(t, stream, "x")
				got, err := receive(stream)
				if fmt.Sprint(got) != row.want || row.goesOn != (err == io.EOF) {
					t.Errorf("%v, %v; want %s", got, err, row.want)
				}
			})
		})
	}
}
