// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
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

	"github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/grpctest"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	aroundRoundRobin   = `[{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]`
	aroundLeastRequest = `[{"stagger_retry_elsewhere": {"childPolicy": [{"least_request_experimental": {}}]}}]`
	plainRoundRobin    = `[{"round_robin": {}}]`
	retryFile          = `
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
	return testkit.Must(policy.Parse("retry.yaml", []byte(text)))(tb)
}

const (
	create = "/acme.orders.v1.OrderService/CreateOrder"
	ms     = time.Millisecond
)

var serverStream = &grpc.StreamDesc{ServerStreams: true}

// journal has the warnings of a Retrier.
type journal struct {
	mu       sync.Mutex // guards all
	warnings []string
}

func withJournal(j *journal) interceptor.Option {
	return interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
		if d.Severity == document.SeverityNote || d.Field == "deadline" { // calls of these tests have none
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.warnings = append(j.warnings, d.String())
	}})
}

func newRetrier(tb testing.TB, set *policy.Set, options ...interceptor.Option) *interceptor.Retrier {
	tb.Helper()
	r := testkit.Must(interceptor.New(set, options...))(tb)
	tb.Cleanup(r.Close)
	return r
}

// exchange makes a call of one message, as a unary call if desc is nil, and returns how it has ended.
func exchange(ctx context.Context, conn *grpc.ClientConn, desc *grpc.StreamDesc, method string) error {
	if desc == nil {
		return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, desc, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for err == nil {
		err = stream.RecvMsg(&emptypb.Empty{})
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// reasonOf returns why a call ended.
func reasonOf(err error) policy.Reason {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		return e.Reason
	}
	return ""
}

// cluster is a client of one Retrier, and several backends.
type cluster struct {
	*grpctest.Backends
	*journal

	retrier *interceptor.Retrier
}

// playCluster runs a test in virtual time. The connection has DialOptions, and the options after them.
func playCluster(t *testing.T, n int, file string, test func(t *testing.T, c cluster), options ...grpc.DialOption) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		c := cluster{journal: j, retrier: newRetrier(t, mustParse(t, file), withJournal(j), interceptor.WithRandom(func() float64 { return 0 }))}
		j.warnings = nil
		c.Backends = grpctest.Start(t, n, `{"loadBalancingConfig": `+plainRoundRobin+`}`, append(c.retrier.DialOptions(), options...)...)
		test(t, c)
	})
}

func (c cluster) call(ctx context.Context, method string) error {
	return c.Conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
}

// picksElsewhere reports whether the policy picks for a call of a method without retries, which the Retrier gives no context.
func (c cluster) picksElsewhere(t *testing.T) bool {
	t.Helper()
	ctx := elsewhere.NewContext(t.Context())
	testkit.NoError(t, c.call(ctx, create))
	c.Visits()
	picked, _ := elsewhere.LastPick(ctx)
	return picked
}

// settle connects to all backends, and then lets those fail.
func (c cluster) settle(t *testing.T, failing ...int) {
	t.Helper()
	c.VisitAll(t, func() error { return c.call(t.Context(), create) })
	for _, i := range failing {
		c.Servers[i].On("*", testserver.Fail(codes.Unavailable))
	}
}

// parted reports whether all attempts have gone to different backends.
func parted(visits []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(visits)))) == len(visits)
}

const list = "/acme.orders.v1.OrderService/ListOrders"

func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	for leaf, config := range map[string]string{"round robin": aroundRoundRobin, "least request": aroundLeastRequest} {
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
					for range 5 { // before that, no hedge is sent
						testkit.NoError(t, exchange(t.Context(), c.Conn, desc, list))
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
		playCluster(t, 1, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
			c.settle(t, 0)
			if err := c.call(t.Context(), get); reasonOf(err) != policy.ReasonAttemptsExhausted || len(c.Visits()) != 4 {
				t.Errorf("%v; want four attempts at the only backend", err)
			}
		})
	})
	t.Run("the first call of a connection", func(t *testing.T) {
		playCluster(t, 4, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
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
		playCluster(t, 4, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
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
			r := newRetrier(t, mustParse(t, balanced(aroundRoundRobin)), withJournal(new(journal)))
			c := cluster{Backends: grpctest.Start(t, 4, `{"loadBalancingConfig": `+aroundRoundRobin+`, "methodConfig": [{"name": [{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}],
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
		"the policy goes":   {aroundRoundRobin, plainRoundRobin},
		"the policy comes":  {plainRoundRobin, aroundRoundRobin},
		"the child changes": {aroundRoundRobin, aroundLeastRequest},
	} {
		t.Run(name, func(t *testing.T) {
			playCluster(t, 4, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
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
		playCluster(t, 3, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
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
	playCluster(t, 3, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
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
		picks bool // the policy is the connection's
	}{
		"the policy":               {balanced(aroundRoundRobin), nil, true},
		"another policy":           {balanced(plainRoundRobin), nil, false},
		"none":                     {retryFile, nil, false},
		"a default config behind":  {balanced(aroundRoundRobin), []grpc.DialOption{grpc.WithDefaultServiceConfig(`{}`)}, false},
		"service configs disabled": {balanced(aroundRoundRobin), []grpc.DialOption{grpc.WithDisableServiceConfig()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			playCluster(t, 2, row.file, func(t *testing.T, c cluster) { // whose own default stands before
				if picks := c.picksElsewhere(t); picks != row.picks {
					t.Errorf("the policy picks: %v, want %v", picks, row.picks)
				}
				if mc := c.Conn.GetMethodConfig(get); mc.RetryPolicy != nil || mc.Timeout != nil {
					t.Errorf("gRPC was given more than the load balancing: %+v", mc)
				}
			}, row.after...)
		})
	}
	t.Run("the resolver's config replaces it, with a warning", func(t *testing.T) {
		playCluster(t, 2, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
			c.settle(t)
			c.Resolve(`{"loadBalancingConfig": `+plainRoundRobin+`}`, 0, 1)
			synctest.Wait()
			if c.picksElsewhere(t) {
				t.Error("the policy still picks")
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
		playCluster(t, 2, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
			c.settle(t)
			c.Resolve(`{"loadBalancingConfig": `+aroundLeastRequest+`}`, 0, 1)
			c.settle(t, 0, 1)
			_ = c.call(t.Context(), get)
			if len(c.warnings) != 0 {
				t.Errorf("warnings %q; want none", c.warnings)
			}
		})
	})
}

func TestReloadOfLoadBalancing(t *testing.T) {
	playCluster(t, 2, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
		c.settle(t)
		options := len(c.retrier.DialOptions())
		if err := c.retrier.Reload(mustParse(t, "# a comment\n"+balanced(aroundRoundRobin))); err != nil ||
			balancingWarnings(c.journal) != 0 {
			t.Errorf("%v, warnings %q; want none of load balancing", err, c.warnings)
		}
		if err := c.retrier.Reload(mustParse(t, retryFile)); err != nil || balancingWarnings(c.journal) != 1 || !c.picksElsewhere(t) {
			t.Errorf("%v, warnings %q; want one, and the connection as it was", err, c.warnings)
		}
		if n := len(c.retrier.DialOptions()); n != options-1 {
			t.Errorf("%d dial options; want %d, since the new file says nothing of load balancing", n, options-1)
		}
		bad := c.retrier.Reload(mustParse(t, "\n"+balanced(`[{"no_such_policy": {"childPolicy": `+aroundRoundRobin+`}}]`)))
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

// A connection without the file's load balancing is found, though another one to the same target string has it.
func TestBalancingWarning_OtherConnection(t *testing.T) {
	for config, want := range map[string]int{plainRoundRobin: 1, aroundRoundRobin: 0} {
		t.Run(config, func(t *testing.T) {
			playCluster(t, 1, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
				c.settle(t) // it has the policy
				server := testserver.Start(t)
				names := manual.NewBuilderWithScheme("lbtest") // that of c.Conn's target
				names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "elsewhere"}}})
				options := append(server.DialOptions(), grpc.WithResolvers(names))
				options = append(append(options, c.retrier.DialOptions()...), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": `+config+`}`))
				conn := testkit.Must(grpc.NewClient(c.Conn.Target(), options...))(t)
				t.Cleanup(func() { _ = conn.Close() })
				for range 2 {
					server.On("*", testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
					testkit.NoError(t, conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}))
					c.Servers[0].On("*", testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
					testkit.NoError(t, c.call(t.Context(), get))
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
