// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// withKeys makes calls to CreateOrder send an idempotency key in x-order-key.
func withKeys() policy.Config {
	c := config(plain())
	c.Methods[1].IdempotencyKey = "x-order-key"
	return c
}

// keys returns the keys that the server received, one per attempt.
func (s scene) keys(header string) string {
	synctest.Wait()
	var list []string
	for _, a := range s.Attempts() {
		list = append(list, strings.Join(a.Metadata.Get(header), "+"))
	}
	return strings.Join(list, " ")
}

func TestKey_SameInAllAttempts(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		seen := map[string]bool{}
		for range 3 {
			s.Reset()
			s.On(create, down().Times(2), text("made"))
			if got, err := s.call(t.Context(), create); got != "made" || err != nil {
				t.Fatalf("%q, %v: a call with a key is safe to repeat", got, err)
			}
			three := strings.Fields(s.keys("x-order-key"))
			if len(three) != 3 || three[0] != three[1] || three[1] != three[2] || len(three[0]) != 26 || seen[three[0]] {
				t.Errorf("keys %q", three)
			}
			seen[three[0]] = true
		}
	})
}

func TestKey_Callers(t *testing.T) {
	withHeader := metadata.AppendToOutgoingContext(context.Background(), "x-order-key", "from-metadata", "other", "kept")
	for name, row := range map[string]struct {
		ctx          context.Context
		opts         []grpc.CallOption
		header, want string
	}{
		"an option":                    {context.Background(), []grpc.CallOption{interceptor.IdempotencyKey("mine")}, "x-order-key", "mine mine"},
		"metadata":                     {withHeader, nil, "x-order-key", "from-metadata from-metadata"},
		"an option wins over metadata": {withHeader, []grpc.CallOption{interceptor.IdempotencyKey("mine")}, "x-order-key", "mine mine"},
		"the rest of the metadata":     {withHeader, nil, "other", "kept kept"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, withKeys(), func(t *testing.T, s scene) {
				s.On(create, down(), text("made"))
				if _, err := s.call(row.ctx, create, row.opts...); err != nil {
					t.Error(err)
				}
				if got := s.keys(row.header); got != row.want {
					t.Errorf("%s: %q; want %q", row.header, got, row.want)
				}
			})
		})
	}
}

func TestKey_OptionAlone(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(create, down(), text("made"))
		if got, err := s.call(t.Context(), create, interceptor.IdempotencyKey("")); got != "made" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		two := strings.Fields(s.keys(defaults.IdempotencyHeader))
		if len(two) != 2 || two[0] != two[1] || len(two[0]) != 26 {
			t.Errorf("keys %q", two)
		}
	})
}

// A policy that declares the method unsafe overrides a key: a server that ignores the header runs the call twice.
// Idempotent overrides the policy.
func TestKey_DeclaredUnsafe(t *testing.T) {
	never := config(plain())
	never.Methods[1].Idempotency = policy.IdempotencyNone
	never.Methods[1].TransparentRetry = new(false)
	for name, row := range map[string]struct {
		opts []grpc.CallOption
		want int
	}{
		"a key":                {[]grpc.CallOption{interceptor.IdempotencyKey("mine")}, 1},
		"a key and Idempotent": {[]grpc.CallOption{interceptor.IdempotencyKey("mine"), interceptor.Idempotent()}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, never, func(t *testing.T, s scene) {
				s.On(create, down(), text("made"))
				_, err := s.call(t.Context(), create, row.opts...)
				if got := strings.Fields(s.keys(defaults.IdempotencyHeader)); len(got) != row.want || got[0] != "mine" {
					t.Errorf("keys %q, %v; want %d attempts with the key", got, err, row.want)
				}
				if row.want == 1 && reasonOf(err) != policy.ReasonNotIdempotent {
					t.Errorf("%v; want %s", err, policy.ReasonNotIdempotent)
				}
			})
		})
	}
}

// keyed is a service config with a policy whose calls carry a key.
var keyedConfig = strings.Replace(retries("3", ""), `"retryPolicy"`, `"idempotencyKey": {"header": "x-order-key"}, "retryPolicy"`, 1)

// The first call of a connection begins before its service config has come. If that asks for a key, which the first
// attempt did not carry, a server could not know another attempt for the same call.
func TestKey_DeliveredLate(t *testing.T) {
	withHeader := metadata.AppendToOutgoingContext(context.Background(), "x-order-key", "mine")
	for name, row := range map[string]struct {
		ctx     context.Context
		opts    []grpc.CallOption
		options []interceptor.Option
		want    string // keys
		reason  policy.Reason
	}{
		"first":                                  {context.Background(), nil, nil, "", policy.ReasonNotIdempotent},
		"first, without an observer of attempts": {context.Background(), nil, []interceptor.Option{callsOnly}, "", policy.ReasonNotIdempotent},
		"a key in another header":                {context.Background(), []grpc.CallOption{interceptor.IdempotencyKey("mine")}, nil, "", policy.ReasonNotIdempotent},
		"the key was there":                      {withHeader, nil, nil, "mine mine mine", policy.ReasonAttemptsExhausted},
		"declared by the caller":                 {context.Background(), []grpc.CallOption{interceptor.Idempotent()}, nil, " new new", policy.ReasonAttemptsExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			playLive(t, nil, func(t *testing.T, s scene) {
				if row.options != nil {
					s.retrier = mustNew(t, nil, append(row.options, interceptor.WithServiceConfig(), half)...)
				}
				s.On("*", down())
				l := dialLive(t, s, keyedConfig, s.retrier.Resolver)
				_, err := l.call(row.ctx, create, row.opts...)
				got := l.keys("x-order-key")
				if fields := strings.Fields(got); len(fields) == 2 && fields[0] == fields[1] && len(fields[0]) == 26 {
					got = strings.ReplaceAll(got, fields[0], "new")
				}
				if got != row.want || reasonOf(err) != row.reason {
					t.Errorf("keys %q, %v (%s); want %q, %s", got, err, reasonOf(err), row.want, row.reason)
				}
				l.Reset()
				_, err = l.call(t.Context(), create)
				if keys := strings.Fields(l.keys("x-order-key")); len(keys) != 3 || keys[0] != keys[2] {
					t.Errorf("then keys %q, %v; want one in three attempts", keys, err)
				}
			})
		})
	}
}

func TestKey_DeliveredLateToAStream(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, keyedConfig, s.retrier.Resolver)
		for _, want := range []int{1, 3} {
			l.Reset()
			stream := l.open(t, t.Context(), serverStream)
			send(t, stream, "order 7")
			_, err := receive(stream)
			if got := l.Count(get); got != want || len(strings.Fields(l.keys("x-order-key"))) != want/3*3 {
				t.Errorf("%d attempts with keys %q, %v; want %d", got, l.keys("x-order-key"), err, want)
			}
		}
	})
}

// callsOnly is an observer for which nothing of an attempt is noted.
var callsOnly = interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})

// An attempt that never left this client needs no key: later ones send it.
func TestKey_DeliveredLateUnsent(t *testing.T) {
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", text("made"))
		l := dialLive(t, s, keyedConfig, s.retrier.Resolver)
		refused := 0
		unsent := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if refused++; refused > 1 {
				return invoke(ctx, method, req, reply, cc, opts...)
			}
			err := invoke(ctx, method, req, reply, cc, append(opts, grpc.PerRPCCredentials(noToken{}))...)
			if status.Code(err) != codes.Unavailable {
				t.Errorf("%v; want UNAVAILABLE", err)
			}
			return err
		}
		conn := must.Get(grpc.NewClient("live:///orders", append(slices.Concat(s.DialOptions(), s.retrier.DialOptions()),
			grpc.WithResolvers(s.retrier.Resolver(l.resolver)), grpc.WithChainUnaryInterceptor(unsent))...))(t)
		t.Cleanup(func() { _ = conn.Close() })
		l.conn = conn
		got, err := l.call(t.Context(), create)
		if keys := strings.Fields(l.keys("x-order-key")); got != "made" || err != nil || len(keys) != 1 || len(keys[0]) != 26 {
			t.Errorf("%q, %v, keys %q; want one attempt with a key", got, err, keys)
		}
	})
}

// noToken has no token yet: gRPC makes no stream.
type noToken struct{}

func (noToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, status.Error(codes.Unavailable, "no token yet")
}

func (noToken) RequireTransportSecurity() bool { return false }

func TestKey_Streams(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		s.On(create, moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.Receive(0), say("made")))
		stream := must.Get(s.conn.NewStream(t.Context(), clientStream, create))(t)
		send(t, stream, "a")
		_ = stream.CloseSend()
		if got, _ := receive(stream); len(got) != 1 {
			t.Errorf("received %v", got)
		}
		if two := strings.Fields(s.keys("x-order-key")); len(two) != 2 || two[0] != two[1] || len(two[0]) != 26 {
			t.Errorf("keys %q", two)
		}
	})
}

func TestKey_Invalid(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		s.On(create, text("made"))
		_, err := s.call(t.Context(), create, interceptor.IdempotencyKey("line\nbreak"))
		if status.Code(err) != codes.Internal || reasonOf(err) != policy.ReasonNonRetryable || len(s.attempts) != 1 {
			t.Errorf("%v (%s) after %d attempts", err, reasonOf(err), len(s.attempts))
		}
	})
}

func TestKey_CallersMetadata(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		s.On(create, down(), text("made"))
		md := metadata.MD{"X-Order-Key": {""}, "other": {"kept"}} // as a careless caller writes it
		before := maps.Clone(md)
		if _, err := s.call(metadata.NewOutgoingContext(t.Context(), md), create); err != nil {
			t.Error(err)
		}
		if !maps.EqualFunc(md, before, func(a, b []string) bool { return strings.Join(a, "+") == strings.Join(b, "+") }) {
			t.Errorf("%v; was %v", md, before)
		}
		if two := strings.Fields(s.keys("x-order-key")); len(two) != 2 || two[0] != two[1] || len(two[0]) != 26 {
			t.Errorf("keys %q; an empty one is none", two)
		}
	})
}

func TestKey_Hedges(t *testing.T) {
	c := hedged()
	c.Methods[0].IdempotencyKey = "x-order-key"
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), text("second"))
		if got, err := s.call(t.Context(), get); got != "second" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if two := strings.Fields(s.keys("x-order-key")); len(two) != 2 || two[0] != two[1] || len(two[0]) != 26 {
			t.Errorf("keys %q", two)
		}
	})
}

// The abandoned attempt may have taken effect: only the key makes the next one safe.
func TestKey_Timeout(t *testing.T) {
	for key, row := range map[string]struct {
		want     codes.Code
		attempts int
	}{"x-order-key": {codes.OK, 2}, "": {codes.DeadlineExceeded, 1}} {
		t.Run("key "+key, func(t *testing.T) {
			c := config(hasty())
			c.Methods[1].IdempotencyKey, c.Methods[1].Timeout = key, 5*time.Second
			play(t, c, func(t *testing.T, s scene) {
				s.On(create, testserver.Hang().Times(1), text("made"))
				if _, err := s.call(t.Context(), create); status.Code(err) != row.want || s.Count(create) != row.attempts {
					t.Errorf("%v after %d attempts; want %v after %d", err, s.Count(create), row.want, row.attempts)
				}
			})
		})
	}
}

func TestKey_InvalidOfStream(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		_, err := s.conn.NewStream(t.Context(), bidiStream, create, interceptor.IdempotencyKey("line\nbreak"))
		if status.Code(err) != codes.Internal || reasonOf(err) != policy.ReasonNonRetryable || len(s.attempts) != 1 || s.Count(create) != 0 {
			t.Errorf("%v (%s) after %d attempts", err, reasonOf(err), len(s.attempts))
		}
	})
}

func TestKey_Disabled(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		s.On(create, text("made"))
		if _, err := s.call(t.Context(), create, interceptor.Disable(), interceptor.IdempotencyKey("mine")); err != nil || s.keys("x-order-key") != "" {
			t.Errorf("%v, key %s", err, s.keys("x-order-key"))
		}
	})
}
