// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// withKeys makes calls to CreateOrder send an idempotency key in x-order-key.
func withKeys() spec.Config {
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

// The key of a call that has succeeded at once says nothing about the next call, which may use its memory.
func TestKey_OfOneCall(t *testing.T) {
	unary := mustNew(t, mustSet(t, config(plain()))).Unary()
	for range 10 { // the memory may come from elsewhere
		attempts := 0
		down := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			attempts++
			return status.Error(codes.Unavailable, "down")
		}
		_ = unary(t.Context(), create, nil, nil, nil, answered, interceptor.IdempotencyKey("k"))
		if err := unary(t.Context(), create, nil, nil, nil, down); reasonOf(err) != policy.ReasonNotIdempotent || attempts != 1 {
			t.Fatalf("%s after %d attempts; want not_idempotent after one", reasonOf(err), attempts)
		}
	}
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
	never.Methods[1].Idempotency = "NONE"
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

func TestKey_Disabled(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		s.On(create, text("made"))
		if _, err := s.call(t.Context(), create, interceptor.Disable(), interceptor.IdempotencyKey("mine")); err != nil || s.keys("x-order-key") != "" {
			t.Errorf("%v, key %s", err, s.keys("x-order-key"))
		}
	})
}
