// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestDisable(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		finished := 0
		_, err := s.call(t.Context(), get, interceptor.Disable(), grpc.OnFinish(func(error) { finished++ }))
		if s.Count(get) != 1 || reasonOf(err) != "" || finished != 1 || len(s.calls) != 0 {
			t.Errorf("%d attempts, error %v, OnFinish %d times, %d events; want gRPC's own call", s.Count(get), err, finished, len(s.calls))
		}

		s.Reset()
		s.On(get, down())
		all := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultCallOptions(interceptor.Disable()))...)
		if err := exchange(t.Context(), all, nil, get); s.Count(get) != 1 || reasonOf(err) != "" || len(s.calls) != 0 {
			t.Errorf("by default: %d attempts, error %v, %d events; want gRPC's own call", s.Count(get), err, len(s.calls))
		}
	})
}

func TestMaxAttempts(t *testing.T) {
	for name, row := range map[string]struct {
		opts []grpc.CallOption
		want int
		warn string
	}{
		"fewer than the policy's": {[]grpc.CallOption{interceptor.MaxAttempts(2)}, 2, ""},
		"more than the policy's":  {[]grpc.CallOption{interceptor.MaxAttempts(9)}, 4, ""},
		"none after the first":    {[]grpc.CallOption{interceptor.MaxAttempts(1)}, 1, ""},
		"the last holds":          {[]grpc.CallOption{interceptor.MaxAttempts(1), interceptor.MaxAttempts(3)}, 3, ""},
		"not even the first":      {[]grpc.CallOption{interceptor.MaxAttempts(0)}, 1, "interceptor.MaxAttempts: 0: counts as 1"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down())
				for range 2 {
					s.Reset()
					s.On(get, down())
					_, err := s.call(t.Context(), get, row.opts...)
					if s.Count(get) != row.want || reasonOf(err) != policy.ReasonAttemptsExhausted {
						t.Errorf("%d attempts, %s; want %d", s.Count(get), reasonOf(err), row.want)
					}
				}
				for kind, desc := range kinds() {
					s.Reset()
					s.On(get, down())
					if _, _, err := s.whole(t, desc, row.opts...); s.Count(get) != row.want || reasonOf(err) != policy.ReasonAttemptsExhausted {
						t.Errorf("%s stream: %d attempts, %s; want %d", kind, s.Count(get), reasonOf(err), row.want)
					}
				}
				if got := strings.Join(s.warnings, "; "); !strings.HasPrefix(got, row.warn) || (got == "") != (row.warn == "") || len(s.warnings) > 1 {
					t.Errorf("warnings %q; want %q", got, row.warn)
				}
			})
		})
	}
	t.Run("of hedges", func(t *testing.T) {
		play(t, hedged(), func(t *testing.T, s scene) {
			s.On(get, testserver.Hang())
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = s.call(ctx, get, interceptor.MaxAttempts(2))
			if s.Count(get) != 2 {
				t.Errorf("%d attempts; want 2", s.Count(get))
			}
		})
	})
}

func TestMaxAttemptsLimit(t *testing.T) {
	eight := plain()
	eight.MaxAttempts = 8
	play(t, config(eight), func(t *testing.T, s scene) {
		s.On(get, down())
		_, _ = s.call(t.Context(), get)
		if got := s.Count(get); got != 5 {
			t.Errorf("%d attempts; want gRPC's cap of 5", got)
		}
		if got := s.retrier.State().Warnings; !strings.Contains(got[0].String(), "cut to 5") {
			t.Errorf("warnings %v; want one of the cut", got)
		}
	})
	t.Run("in the file", func(t *testing.T) {
		limited := config(eight)
		limited.MaxAttemptsLimit = 6
		play(t, limited, func(t *testing.T, s scene) {
			s.On(get, down())
			_, _ = s.call(t.Context(), get)
			s.retrier.Reload(mustSet(t, config(eight)))
			_, _ = s.call(t.Context(), get)
			if got := s.Count(get); got != 6+5 {
				t.Errorf("%d attempts; want 6, and after a reload 5", got)
			}
		})
	})
	t.Run("of another set", func(t *testing.T) { // whose own limit warns of nothing
		wide := config(eight)
		wide.MaxAttemptsLimit = 8
		play(t, config(plain()), func(t *testing.T, s scene) {
			s.On(get, down())
			_, _ = s.call(t.Context(), get, interceptor.Policy(mustSet(t, wide).Lookup(get)))
			if got := s.Count(get); got != 5 || len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "is cut to 5") {
				t.Errorf("%d attempts, warnings %v; want 5 and one of the cut", got, s.warnings)
			}
		})
	})
}

func TestOption_BadInput(t *testing.T) {
	t.Parallel()
	set := mustSet(t, spec.Config{})
	for want, option := range map[string]interceptor.Option{
		`interceptor: WithBudget("orders", nil): must be a function; for no limit return budget.Unlimited`: interceptor.WithBudget("orders", nil),
	} {
		if _, err := interceptor.New(set, option); err == nil || err.Error() != want {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	if _, err := interceptor.New(nil); err == nil {
		t.Error("New(nil) succeeds")
	}
	if _, err := interceptor.Load("no/such/file.yaml"); err == nil || !strings.Contains(err.Error(), "no/such/file.yaml") {
		t.Errorf("Load: %v; want an error that names the file", err)
	}
}

func TestWarnings_DefaultLogger(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	mustNew(t, mustSet(t, config(plain())))
	if !strings.Contains(out.String(), "level=INFO") || strings.Count(out.String(), "isn't declared idempotent") != 1 {
		t.Errorf("logged %q; want one note of methods that are not declared idempotent", &out)
	}
}

func TestCallOption_WithoutInterceptor(t *testing.T) {
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		s.conn = s.Dial(t)
		s.On(get, text("hello"))
		if got, err := s.call(t.Context(), get, interceptor.Idempotent(), interceptor.Disable(), interceptor.Policy(nil)); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A policy that was made for another set must not be taken for one of this Retrier's.
func TestPolicy_BudgetOfAnotherSet(t *testing.T) {
	quietly(t, config(plain()), func(t *testing.T, s scene, p *purse) {
		other := mustSet(t, config(plain())) // budget NONE
		s.On(get, down())
		_, _ = s.call(t.Context(), get, interceptor.Policy(other.Lookup(get)))
		if p.ok+p.bad != 0 || s.Count(get) != 4 {
			t.Errorf("the budget was told of %d calls, the server of %d attempts; want 0 and 4", p.ok+p.bad, s.Count(get))
		}
		_, _ = s.call(t.Context(), get)
		if p.ok+p.bad != 1 {
			t.Errorf("the budget was told of %d calls of the real policy; want 1", p.ok+p.bad)
		}
	})
}
