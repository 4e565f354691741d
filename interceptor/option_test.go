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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestIdempotentDeclaresOneCallSafe(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(create, down())
		_, err := s.call(t.Context(), create, interceptor.Idempotent())
		if s.Count(create) != 4 || reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%d attempts, %s; want 4", s.Count(create), reasonOf(err))
		}
		_, err = s.call(t.Context(), create)
		if s.Count(create) != 5 || reasonOf(err) != policy.ReasonNotIdempotent {
			t.Errorf("the next call: %d attempts, %s; want 1 more", s.Count(create), reasonOf(err))
		}
	})
}

func TestIdempotentWinsOverAPolicyThatSaysNever(t *testing.T) {
	c := config(plain())
	c.Methods[0].Idempotency = policy.IdempotencyNone
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, down())
		if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonNotIdempotent {
			t.Errorf("%s; want not_idempotent", reasonOf(err))
		}
		if _, err := s.call(t.Context(), get, interceptor.Idempotent()); reasonOf(err) != policy.ReasonAttemptsExhausted {
			t.Errorf("%s; want attempts_exhausted", reasonOf(err))
		}
	})
}

func TestDisableLetsACallPassBy(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		finished := 0
		_, err := s.call(t.Context(), get, interceptor.Disable(), grpc.OnFinish(func(error) { finished++ }))
		if s.Count(get) != 1 || reasonOf(err) != "" || finished != 1 || len(s.calls) != 0 {
			t.Errorf("%d attempts, error %v, OnFinish %d times, %d events; want gRPC's own call", s.Count(get), err, finished, len(s.calls))
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

func TestWithPolicyReplacesTheMethodsPolicyForOneCall(t *testing.T) {
	two := plain()
	two.MaxAttempts = 2
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		for _, row := range []struct {
			name string
			p    *policy.Policy
			want int
		}{
			{"its own attempts", mustPolicy(t, policy.Spec{Retry: &two, Idempotency: policy.IdempotencyAssume}), 2},
			{"not declared safe", mustPolicy(t, policy.Spec{Retry: &two}), 1},
			{"no policy", nil, 1},
		} {
			s.Reset()
			_, _ = s.call(t.Context(), get, interceptor.WithPolicy(row.p))
			if got := s.Count(get); got != row.want {
				t.Errorf("%s: %d attempts; want %d", row.name, got, row.want)
			}
		}
	})
}

func TestMoreThanFiveAttemptsNeedARetrierThatAllowsThem(t *testing.T) {
	eight := plain()
	eight.MaxAttempts = 8
	play(t, config(eight), func(t *testing.T, s scene) {
		s.On(get, down())
		_, _ = s.call(t.Context(), get)
		if got := s.Count(get); got != 5 {
			t.Errorf("%d attempts; want gRPC's cap of 5", got)
		}
		if got := s.retrier.Warnings(); !strings.Contains(got[len(got)-1].String(), "cut to 5") {
			t.Errorf("warnings %v; want one of the cut", got)
		}
	})
	t.Run("WithMaxAttempts", func(t *testing.T) {
		play(t, config(eight), func(t *testing.T, s scene) {
			s.On(get, down())
			_, _ = s.call(t.Context(), get)
			if got := s.Count(get); got != 8 || strings.Contains(strings.Join(texts(s.retrier.Warnings()), ""), "cut") {
				t.Errorf("%d attempts, warnings %v; want 8 and none of a cut", got, s.retrier.Warnings())
			}
		}, interceptor.WithMaxAttempts(10))
	})
}

func texts(diagnostics []policy.Diagnostic) []string {
	var list []string
	for _, p := range diagnostics {
		list = append(list, p.String())
	}
	return list
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Config{})
	for want, option := range map[string]interceptor.Option{
		"interceptor: WithMaxAttempts(0): must be at least 1":                                          interceptor.WithMaxAttempts(0),
		"interceptor: WithRandom(nil): must be a function":                                             interceptor.WithRandom(nil),
		`interceptor: WithBudget("orders", nil): must be a budget; for no limit give budget.Unlimited`: interceptor.WithBudget("orders", nil),
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

func TestWarningsThatNobodyListensToGoToTheDefaultLogger(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	mustNew(t, mustSet(t, config(plain())))
	if !strings.Contains(out.String(), "acme.orders.v1.OrderService") || !strings.Contains(out.String(), "idempotency") {
		t.Errorf("logged %q; want the warning of methods that nobody declares safe", &out)
	}
}

func TestOptionsDoNothingWithoutTheInterceptor(t *testing.T) {
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.conn = s.Dial(t)
		s.On(get, text("hello"))
		if got, err := s.call(t.Context(), get, interceptor.Idempotent(), interceptor.Disable(), interceptor.WithPolicy(nil)); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestEventsTellTheWholeStory(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Delay(30*ms).Times(2), text(""))
		_, _ = s.call(t.Context(), get)
		if len(s.attempts) != 3 || len(s.decisions) != 2 || len(s.calls) != 1 {
			t.Fatalf("%d attempts, %d decisions, %d calls; want 3, 2, 1", len(s.attempts), len(s.decisions), len(s.calls))
		}
		second := s.attempts[1]
		if second.Number != 2 || second.Code != codes.Unavailable || second.Elapsed != 30*ms ||
			second.Start.Sub(s.attempts[0].Start) != 130*ms || second.Peer == nil || second.Method != get || second.Target != s.conn.Target() {
			t.Errorf("second attempt %+v", second)
		}
		if d := s.decisions[1]; d.Attempt != 2 || d.Code != codes.Unavailable || !d.Decision.Retry || d.Decision.Delay != 200*ms || d.TimedOut {
			t.Errorf("second decision %+v", d)
		}
		if c := s.calls[0]; c.Attempts != 3 || c.Elapsed != 360*ms || c.Waited != 300*ms || c.Code != codes.OK || c.Err != nil || c.Reason != policy.ReasonSucceeded {
			t.Errorf("call %+v", c)
		}
	})
}

func TestTheErrorIsTheServersOwnWithTheStoryBesideIt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		st, err := status.New(codes.Unavailable, "the disk is full").WithDetails(status.New(codes.DataLoss, "sector 7").Proto())
		if err != nil {
			t.Fatal(err)
		}
		s.On(get, down().Delay(time.Second), down(), down(), testserver.FailStatus(st))
		_, err = s.call(t.Context(), get)
		got, ok := status.FromError(err)
		if !ok || got.Message() != "the disk is full" || len(got.Details()) != 1 || err.Error() != st.Err().Error() {
			t.Errorf("status %v; want the last attempt's own", got)
		}
		e := err.(*interceptor.Error) //nolint:errorlint // that is what is promised
		if e.Attempts != 4 || e.Elapsed != 1700*ms || e.Reason != policy.ReasonAttemptsExhausted {
			t.Errorf("%+v", e)
		}
	})
}
