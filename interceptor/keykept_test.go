// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestTheMetadataOfTheCallerIsNotChanged(t *testing.T) {
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

func TestAHedgeSendsTheKeyOfItsCall(t *testing.T) {
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

// The attempt that is given up may have taken effect: only the key makes the next one safe.
func TestACallWithAKeyIsRepeatedAfterATimeout(t *testing.T) {
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

func TestAStreamWithAKeyThatMetadataCannotHoldIsRefusedOnce(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		_, err := s.conn.NewStream(t.Context(), bidiStream, create, interceptor.IdempotencyKey("line\nbreak"))
		if status.Code(err) != codes.Internal || reasonOf(err) != policy.ReasonNonRetryable || len(s.attempts) != 1 || s.Count(create) != 0 {
			t.Errorf("%v (%s) after %d attempts", err, reasonOf(err), len(s.attempts))
		}
	})
}

func TestACallThatIsLetPassSendsNoKey(t *testing.T) {
	play(t, withKeys(), func(t *testing.T, s scene) {
		s.On(create, text("made"))
		if _, err := s.call(t.Context(), create, interceptor.Disable(), interceptor.IdempotencyKey("mine")); err != nil || s.keys("x-order-key") != "" {
			t.Errorf("%v, key %s", err, s.keys("x-order-key"))
		}
	})
}
