// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest" // the policy least_request_experimental
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/lbtest"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tried"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	elsewhere  = `[{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]`
	leastElse  = `[{"stagger_retry_elsewhere": {"childPolicy": [{"least_request_experimental": {}}]}}]`
	roundRobin = `[{"round_robin": {}}]`
	retryFile  = `
budgets: [{name: all, bucket: {size: 1000, perSuccess: 10}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: all}
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0s, nonFatalStatusCodes: [UNAVAILABLE], budget: all}
healthCheckConfig: {serviceName: acme}
`
)

func balanced(config string) string { return "loadBalancingConfig: " + config + retryFile }

func mustParse(tb testing.TB, text string) *policy.Set {
	tb.Helper()
	return must.Get(policy.Parse("retry.yaml", []byte(text)))(tb)
}

// cluster is a client of one Retrier, and several backends.
type cluster struct {
	*lbtest.Backends
	*journal

	retrier *interceptor.Retrier
}

// playCluster runs a test in virtual time. The connection has DialOptions, and the options after them.
func playCluster(t *testing.T, n int, file string, test func(t *testing.T, c cluster), options ...grpc.DialOption) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		c := cluster{journal: j, retrier: mustNew(t, mustParse(t, file), withJournal(j), interceptor.WithRandom(func() float64 { return 0 }))}
		j.warnings = nil
		c.Backends = lbtest.Start(t, n, `{"loadBalancingConfig": `+roundRobin+`}`, append(c.retrier.DialOptions(), options...)...)
		test(t, c)
	})
}

func (c cluster) call(ctx context.Context, method string) error {
	return c.Conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
}

// settle connects to all backends, and then lets those fail.
func (c cluster) settle(t *testing.T, failing ...int) {
	t.Helper()
	c.VisitAll(t, func() error { return c.call(t.Context(), create) })
	for _, i := range failing {
		c.Servers[i].On("*", testserver.Fail(codes.Unavailable))
	}
}

func parted(visits []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(visits)))) == len(visits)
}

const list = "/acme.orders.v1.OrderService/ListOrders"

func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	for leaf, config := range map[string]string{"round robin": elsewhere, "least request": leastElse} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			name := leaf + "/" + kind
			t.Run(name+"/one backend is left", func(t *testing.T) {
				playCluster(t, 4, balanced(config), func(t *testing.T, c cluster) {
					c.settle(t, 0, 1, 2)
					for range 20 {
						err := exchange(t.Context(), c.Conn, desc, get)
						if visits := c.Visits(); err != nil || !parted(visits) || visits[len(visits)-1] != 3 {
							t.Fatalf("%v, backends %v; want others each time, and then the one that is left", err, visits)
						}
					}
				})
			})
			t.Run(name+"/all fail", func(t *testing.T) {
				playCluster(t, 4, balanced(config), func(t *testing.T, c cluster) {
					c.settle(t, 0, 1, 2, 3)
					err := exchange(t.Context(), c.Conn, desc, get)
					if visits := c.Visits(); reasonOf(err) != policy.ReasonAttemptsExhausted || len(visits) != 4 || !parted(visits) {
						t.Errorf("%v, backends %v; want all four, each once", err, visits)
					}
				})
			})
			t.Run(name+"/hedges that start together part", func(t *testing.T) {
				playCluster(t, 3, balanced(config), func(t *testing.T, c cluster) {
					c.settle(t)
					for range 8 { // until it is known how fast the method is
						must.Do(t, exchange(t.Context(), c.Conn, desc, list))
					}
					c.Visits()
					for _, s := range c.Servers {
						s.On("*", testserver.OK().Delay(time.Second))
					}
					for range 5 {
						err := exchange(t.Context(), c.Conn, desc, list)
						synctest.Wait()
						if visits := c.Visits(); err != nil || len(visits) != 3 || !parted(visits) {
							t.Fatalf("%v, backends %v; want three, each once", err, visits)
						}
					}
				})
			})
		}
	}
	t.Run("one backend only", func(t *testing.T) {
		playCluster(t, 1, balanced(elsewhere), func(t *testing.T, c cluster) {
			c.settle(t, 0)
			if err := c.call(t.Context(), get); reasonOf(err) != policy.ReasonAttemptsExhausted || len(c.Visits()) != 4 {
				t.Errorf("%v; want four attempts at the only backend", err)
			}
		})
	})
	t.Run("the first call of a connection", func(t *testing.T) {
		playCluster(t, 4, balanced(elsewhere), func(t *testing.T, c cluster) {
			for _, s := range c.Servers {
				s.On("*", testserver.Fail(codes.Unavailable))
			}
			if err := c.call(t.Context(), get); reasonOf(err) != policy.ReasonAttemptsExhausted {
				t.Error(err)
			}
			if visits := c.Visits(); len(visits) != 4 || !parted(visits) {
				t.Errorf("backends %v; want all four, each once", visits)
			}
		})
	})
	t.Run("the call that ends idleness", func(t *testing.T) {
		playCluster(t, 4, balanced(elsewhere), func(t *testing.T, c cluster) {
			c.settle(t, 0, 1, 2, 3)
			time.Sleep(3 * time.Minute)
			if got := c.Conn.GetState(); got != connectivity.Idle {
				t.Fatalf("the connection is %v", got)
			}
			_ = c.call(t.Context(), get)
			if visits := c.Visits(); len(visits) != 4 || !parted(visits) {
				t.Errorf("backends %v; want all four, each once", visits)
			}
		}, grpc.WithIdleTimeout(time.Minute))
	})
	t.Run("gRPC's own retries underneath", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := mustNew(t, mustParse(t, balanced(elsewhere)), quiet)
			c := cluster{Backends: lbtest.Start(t, 4, `{"loadBalancingConfig": `+elsewhere+`, "methodConfig": [{"name": [{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}],
				"retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.01s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`,
				grpc.WithUnaryInterceptor(r.Unary()))}
			c.settle(t, 0, 1, 2, 3)
			_ = c.call(t.Context(), get)
			visits := c.Visits()
			if len(visits) != 8 || !parted(visits[:4]) || !slices.Equal(visits[:4], visits[4:]) {
				t.Errorf("backends %v; want all four, each once, and then the one used longest ago", visits)
			}
		})
	})
}

func TestRetryElsewhereChangesInMidCall(t *testing.T) {
	t.Parallel()
	for name, configs := range map[string][2]string{
		"the policy goes":   {elsewhere, roundRobin},
		"the policy comes":  {roundRobin, elsewhere},
		"the child changes": {elsewhere, leastElse},
	} {
		t.Run(name, func(t *testing.T) {
			playCluster(t, 4, balanced(elsewhere), func(t *testing.T, c cluster) {
				service := func(config string) string { return `{"loadBalancingConfig": ` + config + `}` }
				c.settle(t)
				c.Resolve(service(configs[0]), 0, 1, 2, 3)
				synctest.Wait()
				for _, s := range c.Servers {
					s.On("*", testserver.Fail(codes.Unavailable))
				}
				time.AfterFunc(150*ms, func() { // in the second backoff
					c.Resolve(service(configs[1]), 0, 1, 2, 3)
					for _, s := range c.Servers {
						s.On("*", testserver.OK())
					}
				})
				began := time.Now()
				if err := c.call(t.Context(), get); err != nil || time.Since(began) != 300*ms || len(c.Visits()) != 3 {
					t.Errorf("%v after %v; want success with the third attempt, after 300ms", err, time.Since(began))
				}
			})
		})
	}
	t.Run("backends go and come", func(t *testing.T) {
		playCluster(t, 3, balanced(elsewhere), func(t *testing.T, c cluster) {
			c.settle(t, 0, 1, 2)
			time.AfterFunc(50*ms, func() { c.Resolve("", 1) })
			time.AfterFunc(250*ms, func() { c.Resolve("", 0, 1, 2) })
			_ = c.call(t.Context(), get)
			visits := c.Visits()
			if len(visits) != 4 || visits[1] != 1 {
				t.Errorf("backends %v; want the second attempt at 1, the only one left", visits)
			}
		})
	})
}

// While no backend is there the picker fails, and the call waits with its next attempt until there is one.
func TestRetryElsewherePickerFails(t *testing.T) {
	playCluster(t, 3, balanced(elsewhere), func(t *testing.T, c cluster) {
		c.settle(t, 0, 1, 2)
		time.AfterFunc(50*ms, func() { c.Resolve("", []int{}...) })
		time.AfterFunc(1250*ms, func() {
			c.Resolve("", 0, 1, 2)
			for _, s := range c.Servers {
				s.On("*", testserver.OK())
			}
		})
		if err := c.call(t.Context(), get); err != nil || len(c.Visits()) != 2 {
			t.Errorf("%v; want success at a second backend, when there is one again", err)
		}
	})
}

func TestDialOptionsBringLoadBalancing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file  string
		after []grpc.DialOption
		inUse bool
	}{
		"a policy of package balancer": {balanced(elsewhere), nil, true},
		"another policy":               {balanced(roundRobin), nil, false},
		"none":                         {retryFile, nil, false},
		"a default config behind":      {balanced(elsewhere), []grpc.DialOption{grpc.WithDefaultServiceConfig(`{}`)}, false},
		"service configs disabled":     {balanced(elsewhere), []grpc.DialOption{grpc.WithDisableServiceConfig()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			playCluster(t, 2, row.file, func(t *testing.T, c cluster) { // whose own default stands before
				if err := c.call(t.Context(), get); err != nil || tried.InUse(c.Conn.Target()) != row.inUse {
					t.Errorf("%v; in use: %v, want %v", err, !row.inUse, row.inUse)
				}
				if mc := c.Conn.GetMethodConfig(get); mc.RetryPolicy != nil || mc.Timeout != nil {
					t.Errorf("gRPC was given more than the load balancing: %+v", mc)
				}
			}, row.after...)
		})
	}
	t.Run("the resolver's config replaces it, with a warning", func(t *testing.T) {
		playCluster(t, 2, balanced(elsewhere), func(t *testing.T, c cluster) {
			c.settle(t)
			c.Resolve(`{"loadBalancingConfig": `+roundRobin+`}`, 0, 1)
			synctest.Wait()
			if tried.InUse(c.Conn.Target()) {
				t.Error("the policy is in use still")
			}
			c.settle(t, 0, 1)
			_ = c.call(t.Context(), get)
			_ = c.call(t.Context(), get)
			if len(c.warnings) != 1 || !strings.HasPrefix(c.warnings[0], "retry.yaml:1:22: loadBalancingConfig: "+c.Conn.Target()+": the connection has another load balancing policy") {
				t.Errorf("warnings %q; want one of the file's policy", c.warnings)
			}
		})
	})
	t.Run("the resolver's names it too", func(t *testing.T) {
		playCluster(t, 2, balanced(elsewhere), func(t *testing.T, c cluster) {
			c.settle(t)
			c.Resolve(`{"loadBalancingConfig": `+leastElse+`}`, 0, 1)
			c.settle(t, 0, 1)
			if _ = c.call(t.Context(), get); len(c.warnings) != 0 {
				t.Errorf("warnings %q; want none", c.warnings)
			}
		})
	})
}

func TestReloadOfLoadBalancing(t *testing.T) {
	playCluster(t, 2, balanced(elsewhere), func(t *testing.T, c cluster) {
		c.settle(t)
		options := len(c.retrier.DialOptions())
		if err := c.retrier.Reload(mustParse(t, "# a comment\n"+balanced(elsewhere))); err != nil || balancingWarnings(c.journal) != 0 {
			t.Errorf("%v, warnings %q; want none of load balancing", err, c.warnings)
		}
		if err := c.retrier.Reload(mustParse(t, retryFile)); err != nil || balancingWarnings(c.journal) != 1 || !tried.InUse(c.Conn.Target()) {
			t.Errorf("%v, warnings %q; want one, and the connection as it was", err, c.warnings)
		}
		if n := len(c.retrier.DialOptions()); n != options-1 {
			t.Errorf("%d dial options; want %d, since the new file says nothing of load balancing", n, options-1)
		}
		bad := c.retrier.Reload(mustParse(t, "\n"+balanced(`[{"no_such_policy": {"childPolicy": `+elsewhere+`}}]`)))
		const want = "retry.yaml:2:22: loadBalancingConfig: the program has no policy no_such_policy; import the package that registers it"
		if bad == nil || bad.Error() != want {
			t.Errorf("%v; want %s", bad, want)
		}
	})
}

func balancingWarnings(j *journal) (n int) {
	for _, w := range j.warnings {
		if strings.Contains(w, "loadBalancingConfig: has changed: connections keep") {
			n++
		}
	}
	return n
}

func TestNewRefusesLoadBalancing(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`[{"stagger_retry_elsewhere": {"childPolicy": [{"a": {}}]}}]`:                              "retry.yaml:1:22: loadBalancingConfig: stagger_retry_elsewhere: childPolicy: the program has no policy a; ",
		`[{"stagger_retry_elsewhere": {"childPolicy": [{"outlier_detection_experimental": {}}]}}]`: "retry.yaml:1:22: loadBalancingConfig: stagger_retry_elsewhere: childPolicy",
		`[{"a": {}}, {"b": {"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}}]`:  "retry.yaml:1:22: loadBalancingConfig: the program has no policy a, b; ",
	} {
		_, err := interceptor.New(mustParse(t, balanced(config)))
		if wrong, ok := errors.AsType[*policy.Error](err); !ok || !strings.HasPrefix(wrong.Error(), want) {
			t.Errorf("%s: %v; want %s…", config, err, want)
		}
	}
}

// TestElsewhereAllocations counts what the record of backends costs calls that succeed at once.
func TestElsewhereAllocations(t *testing.T) {
	r := mustNew(t, mustParse(t, balanced(elsewhere)), quiet)
	unary := r.Unary()
	for name, row := range map[string]struct {
		config string
		method string
		want   float64
	}{
		"without the policy": {roundRobin, get, 0},
		"with it":            {elsewhere, get, 1},
		"with it, hedged":    {elsewhere, list, 1},
		"one attempt only":   {elsewhere, "/acme.users.v1.UserService/GetUser", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := lbtest.Start(t, 1, `{"loadBalancingConfig": `+row.config+`}`)
			must.Do(t, b.Conn.Invoke(t.Context(), create, &emptypb.Empty{}, &emptypb.Empty{}))
			call := func(conn *grpc.ClientConn) func() {
				return func() { _ = unary(context.Background(), row.method, nil, nil, conn, finished) }
			}
			if got, bare := testing.AllocsPerRun(1000, call(b.Conn)), testing.AllocsPerRun(1000, call(nil)); got < bare+row.want-slack || got > bare+row.want+slack {
				t.Errorf("%v allocations, %v without a connection; want %v more", got, bare, row.want)
			}
		})
	}
}

func ExampleRetrier_DialOptions_loadBalancing() {
	set, err := policy.Parse("retry.yaml", []byte(`
loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}, {round_robin: {}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE}
`))
	if err != nil {
		panic(err)
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		panic(err)
	}
	conn, servers, end := dialThree(retrier.DialOptions()...) // grpc.NewClient(target, retrier.DialOptions()...)
	defer end()

	servers[0].On("*", testserver.Fail(codes.Unavailable)) // two of three work
	for range 100 {
		if err := conn.Invoke(context.Background(), get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
			panic(err)
		}
	}
	fmt.Println("all of 100 calls have succeeded")
	// Output: all of 100 calls have succeeded
}

// dialThree connects to three backends, all of which have answered a call.
func dialThree(options ...grpc.DialOption) (_ *grpc.ClientConn, servers []*testserver.Server, end func()) {
	for range 3 {
		s, err := testserver.New()
		if err != nil {
			panic(err)
		}
		servers = append(servers, s)
	}
	conn, err := testserver.DialAll(servers, options...)
	if err != nil {
		panic(err)
	}
	for _, s := range servers {
		for s.Count("*") == 0 {
			if err := conn.Invoke(context.Background(), create, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				panic(err)
			}
		}
	}
	return conn, servers, func() {
		_ = conn.Close()
		for _, s := range servers {
			s.Close()
		}
	}
}

// A connection without the file's load balancing is found, though another one to the same target string has it.
func TestBalancingWarning_OtherConnection(t *testing.T) {
	for config, want := range map[string]int{roundRobin: 1, elsewhere: 0} {
		t.Run(config, func(t *testing.T) {
			playCluster(t, 1, balanced(elsewhere), func(t *testing.T, c cluster) {
				c.settle(t) // it has the policy
				server := testserver.Start(t)
				names := manual.NewBuilderWithScheme("lbtest") // that of c.Conn's target
				names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "elsewhere"}}})
				options := append(server.DialOptions(), grpc.WithResolvers(names))
				options = append(append(options, c.retrier.DialOptions()...), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": `+config+`}`))
				conn := must.Get(grpc.NewClient(c.Conn.Target(), options...))(t)
				t.Cleanup(func() { _ = conn.Close() })
				for range 2 {
					server.On("*", testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
					must.Do(t, conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}))
					c.Servers[0].On("*", testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
					must.Do(t, c.call(t.Context(), get))
				}
				warned := slices.DeleteFunc(slices.Clone(c.warnings), func(w string) bool {
					return !strings.Contains(w, "the connection has another load balancing policy")
				})
				if len(warned) != want {
					t.Errorf("warnings %q; want %d", c.warnings, want)
				}
			})
		})
	}
}
