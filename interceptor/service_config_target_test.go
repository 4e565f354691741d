// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// exact is retries without jitter, which only stagger's own key can say.
func exact(attempts string) string {
	return strings.Replace(retries(attempts, ""), `"maxAttempts"`, `"jitter": "NONE", "maxAttempts"`, 1)
}

// unsafe is retries with idempotency NONE.
func unsafe(attempts string) string {
	return strings.Replace(retries(attempts, ""), `"name"`, `"idempotency": "NONE", "name"`, 1)
}

// follows makes calls that fail and checks the waits between their attempts.
func (l live) follows(t *testing.T, what, waits string) {
	t.Helper()
	for range 2 {
		l.Reset()
		_, err := l.call(t.Context(), get)
		if got := l.waits(); got != waits {
			t.Errorf("%s: waits %s, %v; want %s", what, got, err, waits)
		}
	}
}

const (
	noJitter   = "[100ms 200ms]"
	fullJitter = "[50ms 100ms]" // gRPC's reading, carried out by us
)

const disagree = "service config of live:///orders: is not the same for all connections of this target; until it is, each connection follows only"

func TestServiceConfigTarget_TwoConnections(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		one, two := dialLive(t, s, exact("3"), s.retrier.Resolver), dialLive(t, s, exact("3"), s.retrier.Resolver)
		one.follows(t, "one", noJitter)
		two.follows(t, "two", noJitter)

		two.deliver(exact("2"))
		one.follows(t, "one, while two has another config", fullJitter)
		two.follows(t, "two, with its own retry policy", "[50ms]")
		two.deliver(exact("3"))
		one.follows(t, "one, with the same config again", noJitter)
		two.follows(t, "two, with the same config again", noJitter)
		two.deliver(strings.Replace(exact("3"), "NONE", "EQUAL", 1))
		one.follows(t, "one, while only stagger's own keys differ", fullJitter)
		two.follows(t, "two, while only stagger's own keys differ", fullJitter)

		_ = two.conn.Close()
		synctest.Wait()
		one.follows(t, "one alone", noJitter)
		if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], disagree) {
			t.Errorf("warned: %s; want once, %s", s.warnings, disagree)
		}
	})
}

func TestServiceConfigTarget_ConnectionOfAnotherResolver(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		one, two := dialLive(t, s, exact("3"), s.retrier.Resolver), dialLive(t, s, retries("2", ""), nil)
		one.follows(t, "wrapped", noJitter)
		two.follows(t, "not wrapped, but gRPC reads the same there", "[100ms]")
		other := strings.Replace(retries("3", ""), `"0.1s"`, `"0.2s"`, 1)
		two.deliver(other)
		two.follows(t, "not wrapped, so its own config holds", "[100ms 200ms]")
		one.follows(t, "wrapped", noJitter)
		if len(s.warnings) > 0 {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}

func TestServiceConfigTarget_ResolverClosed(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		one, two := dialLive(t, s, exact("3"), s.retrier.Resolver), dialLive(t, s, exact("3"), s.retrier.Resolver)
		one.follows(t, "one", noJitter)
		two.follows(t, "two", noJitter)
		three := dialLive(t, s, exact("3"), nil)
		three.follows(t, "not wrapped, where others are", noJitter)
		for i, l := range []live{one, two} {
			if texts, conns := s.retrier.Delivered(); texts != 1 || conns != 2-i {
				t.Errorf("%d configs of %d connections are kept; want 1 of %d", texts, conns, 2-i)
			}
			_ = l.conn.Close()
			synctest.Wait()
		}
		if texts, conns := s.retrier.Delivered(); texts != 0 || conns != 0 {
			t.Errorf("%d configs of %d connections are kept when the last resolver is closed", texts, conns)
		}
		three.follows(t, "not wrapped, when the others are closed", fullJitter)
	})
}

func TestServiceConfigTarget_Refused(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, exact("3"), s.retrier.Resolver)
		l.follows(t, "before", noJitter)
		l.deliver(strings.Replace(exact("2"), `"backoffMultiplier": 2`, `"backoffMultiplier": 0`, 1)) // by gRPC
		l.follows(t, "gRPC refuses, and keeps the last", noJitter)
		l.deliver(strings.Replace(exact("3"), `"NONE"`, `"SOME"`, 1)) // by us
		l.follows(t, "we refuse, and gRPC's reading holds", fullJitter)
		l.deliver(exact("3"))
		l.follows(t, "after", noJitter)
		if len(s.warnings) != 3 || !strings.Contains(s.warnings[0], "refused by gRPC") {
			t.Errorf("warned:\n%s", strings.Join(s.warnings, "\n"))
		}
	})
}

func TestServiceConfigTarget_Disabled(t *testing.T) {
	hedges := entryOf(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.2s"}`, "")
	for name, row := range map[string]struct {
		config string
		opts   []grpc.DialOption
		want   string
	}{
		"no default":                   {exact("3"), nil, "[]"},
		"default":                      {exact("3"), []grpc.DialOption{grpc.WithDefaultServiceConfig(retries("2", ""))}, "[50ms]"},
		"what gRPC does not read":      {hedges, nil, "[]"},
		"default, as gRPC reads alike": {exact("3"), []grpc.DialOption{grpc.WithDefaultServiceConfig(retries("3", ""))}, fullJitter},
	} {
		t.Run(name, func(t *testing.T) {
			playUnpaid(t, func(t *testing.T, s scene) {
				s.On("*", down().Delay(250*ms))
				if row.want != "[]" {
					s.On("*", down())
				}
				l := dialLive(t, s, row.config, s.retrier.Resolver, append(row.opts, grpc.WithDisableServiceConfig())...)
				l.follows(t, "disabled", row.want)
				if len(s.warnings) > 0 {
					t.Errorf("warned: %s", s.warnings)
				}
				s.On("*", down())
				other := dialLive(t, s, exact("3"), s.retrier.Resolver)
				other.follows(t, "enabled, beside it", fullJitter)
				l.follows(t, "disabled", row.want)
				if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], disagree) {
					t.Errorf("warned: %s; want once, %s", s.warnings, disagree)
				}
			})
		})
	}
}

// resolving is a resolver that does one thing.
type resolving func(cc resolver.ClientConn)

func (resolving) Scheme() string { return "live" }

func (f resolving) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	f(cc)
	return f, nil
}

func (resolving) ResolveNow(resolver.ResolveNowOptions) {}
func (resolving) Close()                                {}

// dialResolving connects with a wrapped resolver that does what f says.
func dialResolving(t *testing.T, s scene, f resolving, opts ...grpc.DialOption) live {
	t.Helper()
	opts = slices.Concat(s.DialOptions(), s.retrier.DialOptions(), []grpc.DialOption{grpc.WithResolvers(s.retrier.Resolver(f))}, opts)
	conn, err := grpc.NewClient("live:///orders", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn = conn
	return live{scene: s}
}

func TestServiceConfigTarget_NoneDelivered(t *testing.T) {
	for name, row := range map[string]struct {
		resolve  func(s scene, one live) resolving
		one, two string
		warnings int
	}{
		"state without one": {func(s scene, _ live) resolving {
			return func(cc resolver.ClientConn) { _ = cc.UpdateState(resolver.State{Addresses: addresses(s)}) }
		}, fullJitter, "[]", 1},
		"addresses": {func(s scene, _ live) resolving {
			return func(cc resolver.ClientConn) { cc.NewAddress(addresses(s)) }
		}, fullJitter, "[]", 1},
		"parsed for another connection": {func(_ scene, one live) resolving {
			return func(cc resolver.ClientConn) { _ = cc.UpdateState(one.state(exact("3"))) }
		}, fullJitter, fullJitter, 2},
		"an error": {func(scene, live) resolving {
			return func(cc resolver.ClientConn) { cc.ReportError(errors.New("no such host")) }
		}, noJitter, "[]", 0},
		"a config that gRPC refuses": {func(s scene, _ live) resolving {
			return func(cc resolver.ClientConn) {
				_ = cc.UpdateState(resolver.State{Addresses: addresses(s), ServiceConfig: cc.ParseServiceConfig("{")})
			}
		}, noJitter, "[]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			playUnpaid(t, func(t *testing.T, s scene) {
				s.On("*", down())
				one := dialLive(t, s, exact("3"), s.retrier.Resolver)
				one.follows(t, "alone", noJitter)
				two := dialResolving(t, s, row.resolve(s, one))
				two.follows(t, "with none", row.two)
				one.follows(t, "with one", row.one)
				if len(s.warnings) != row.warnings {
					t.Errorf("warned %d times; want %d:\n%s", len(s.warnings), row.warnings, strings.Join(s.warnings, "\n"))
				}
			})
		})
	}
}

func addresses(s scene) []resolver.Address { return []resolver.Address{{Addr: s.Target()}} }

func TestServiceConfigTarget_ResolverFails(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		fails := func(cc resolver.ClientConn) { cc.ReportError(errors.New("no such host")) }
		l := dialResolving(t, s, fails, grpc.WithDefaultServiceConfig(retries("2", "")))
		for i := range 2 {
			_, err := l.call(t.Context(), get)
			if len(s.attempts) != i+1 || reasonOf(err) != policy.ReasonNotConnected {
				t.Errorf("%d attempts in %d calls, %v; want one each, and a wait for the second, as the default says", len(s.attempts), i+1, err)
			}
		}
	})
}

func TestServiceConfigTarget_ResolverNotBuilt(t *testing.T) {
	t.Parallel()
	r := mustNew(t, nil, interceptor.WithServiceConfig())
	if _, err := r.Resolver(unbuildable{}).Build(resolver.Target{}, nil, resolver.BuildOptions{}); err == nil {
		t.Error("no error")
	}
	if texts, conns := r.Delivered(); texts != 0 || conns != 0 {
		t.Errorf("%d configs of %d connections are kept", texts, conns)
	}
}

type unbuildable struct{ resolver.Builder }

func (unbuildable) Build(resolver.Target, resolver.ClientConn, resolver.BuildOptions) (resolver.Resolver, error) {
	return nil, errors.New("broken")
}

// gRPC keeps its config while the channel is idle, but its resolver is closed. Keys that only stagger reads must also
// apply to the call that wakes the channel.
func TestServiceConfigTarget_Idle(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, unsafe("3"), s.retrier.Resolver, grpc.WithIdleTimeout(time.Minute))
		for i := range 3 {
			l.wants(t, fmt.Sprintf("call %d, that wakes the channel", i), get, 1, policy.ReasonNotIdempotent)
			l.wants(t, "the next", get, 1, policy.ReasonNotIdempotent)
			time.Sleep(3 * time.Minute)
			if texts, conns := s.retrier.Delivered(); texts != 0 || conns != 0 {
				t.Errorf("%d configs of %d connections are kept while the channel is idle", texts, conns)
			}
		}
	})
}

func TestServiceConfigTarget_ComeAndGo(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for j := range 5 {
					l := dialLive(t, s, exact("3"), s.retrier.Resolver, grpc.WithIdleTimeout(time.Second))
					for k := range 5 {
						_, _ = l.call(t.Context(), get)
						l.resolver.UpdateState(l.state([]string{exact("3"), unsafe("3"), "{}", "{", ""}[(i+j+k)%5]))
						time.Sleep(time.Duration(i+k) * 300 * ms)
					}
					_ = l.conn.Close()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if texts, conns := s.retrier.Delivered(); texts != 0 || conns != 0 {
			t.Errorf("%d configs of %d connections are kept when all are closed", texts, conns)
		}
	})
}

func TestServiceConfigTarget_ManyConfigs(t *testing.T) {
	playUnpaid(t, func(t *testing.T, s scene) {
		s.On("*", down())
		config := func(i int) string {
			return strings.Replace(exact("2"), `"maxAttempts"`, fmt.Sprintf(`"minAttemptTime": "%ds", "maxAttempts"`, i), 1)
		}
		l := dialLive(t, s, config(1), s.retrier.Resolver)
		l.wants(t, "the first", get, 2, policy.ReasonAttemptsExhausted)
		for i := range 200 {
			l.deliver(config(i + 2))
		}
		l.wants(t, "the last", get, 2, policy.ReasonAttemptsExhausted)
		if s.waits() != "[100ms]" {
			t.Errorf("waits %s; want 100ms, without jitter", s.waits())
		}
		if texts, conns := s.retrier.Delivered(); texts != 1 || conns != 1 {
			t.Errorf("%d configs of %d connections are kept; want the last of one", texts, conns)
		}
	})
}
