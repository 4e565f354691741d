// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// observed is a config in mode OBSERVE.
func observed(c policy.Config) policy.Config {
	c.Mode = policy.ModeObserve
	return c
}

// decided are the decisions about calls, as reasons.
func (j *journal) decided() string {
	var list []string
	for _, e := range j.decisions {
		list = append(list, fmt.Sprintf("%s %v %v %v", e.Reason, e.WillRetry, e.Delay, e.Mode))
	}
	return strings.Join(list, ", ")
}

// A call has one attempt, and observers hear what would have followed; a shadow of the budget pays for it.
func TestObserve(t *testing.T) {
	for kind, desc := range callKinds {
		t.Run(kind, func(t *testing.T) {
			play(t, observed(config(minutely())), func(t *testing.T, s scene) {
				s.On(get, restarting, text("2"))
				start := time.Now()
				err := s.ended(t, desc)
				if status.Convert(err).Message() != "restarting" || reasonOf(err) != policy.ReasonModeOff || time.Since(start) != 0 || s.Count(get) != 1 {
					t.Errorf("%v, %s after %v, %d attempts; want the first one's error at once", err, reasonOf(err), time.Since(start), s.Count(get))
				}
				e := s.calls[0]
				if got := s.decided(); got != "retry false 1m0s OBSERVE" || e.Mode != policy.ModeObserve || e.Attempt != 1 || e.Delay != 0 {
					t.Errorf("decided: %s; %+v", got, e)
				}
				b, size := inUse(s.retrier), budget.Default().Size
				if len(b) != 1 || !b[0].Shadow || b[0].Target != s.conn.Target() || b[0].Balance != size-1 || b[0].Capacity != size || b[0].Granted != 1 {
					t.Errorf("%+v; want a shadow that has granted one attempt", b)
				}
			})
		})
	}
	t.Run("to be resumed", func(t *testing.T) {
		play(t, observed(config(minutely())), func(t *testing.T, s scene) {
			s.On(get, moves.Play(moves.Receive(1), say("1")).Then(restarting), text("2"))
			got, took, err := s.whole(t, serverStream, interceptor.Resume(after))
			if got != "[1]" || reasonOf(err) != policy.ReasonModeOff || took != 0 || s.Count(get) != 1 || s.decided() != "retry false 1m0s OBSERVE" {
				t.Errorf("%s, %v, %s after %v, %d attempts; decided %s", got, err, reasonOf(err), took, s.Count(get), s.decided())
			}
		})
	})
}

// Hedges are decided on once a call, and the call's own outcome settles the shadow.
func TestObserve_Hedges(t *testing.T) {
	cheap := func(h *policy.HedgeSpec) { h.Budget = "" }
	d := budget.Default()
	for name, row := range map[string]struct {
		step    testserver.Step
		err     codes.Code
		decided string
		balance float64
	}{
		"fast":                     {text("1"), codes.OK, "", d.Size},
		"slow":                     {text("1").Delay(time.Second), codes.OK, "hedge false 0s OBSERVE", min(d.Size-d.SlowCost+d.SlowCost*d.Refund, max(d.Size, d.RefundSize))},
		"slow, and then it fails":  {down().Delay(time.Second), codes.Unavailable, "hedge false 0s OBSERVE, mode_off false 0s OBSERVE", d.Size - d.SlowCost},
		"slow, and fails for good": {testserver.Fail(codes.NotFound).Delay(time.Second), codes.NotFound, "hedge false 0s OBSERVE, non_retryable false 0s OBSERVE", d.Size - d.SlowCost},
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, observed(hedged(cheap)), func(t *testing.T, s scene) {
					s.On(get, row.step)
					if err := s.ended(t, desc); status.Code(err) != row.err || s.Count(get) != 1 {
						t.Errorf("%v, %d attempts; want %v, 1", err, s.Count(get), row.err)
					}
					if got := s.decided(); got != row.decided {
						t.Errorf("decided: %s; want %s", got, row.decided)
					}
					if b := inUse(s.retrier); len(b) != 1 || !b[0].Shadow || math.Round(10*b[0].Balance)/10 != row.balance {
						t.Errorf("%+v; want a shadow of %v", b, row.balance)
					}
				})
			})
		}
	}
}

// No wait slot is taken, and the shadow refuses when it is empty; those of other modes are untouched.
func TestObserve_Refusals(t *testing.T) {
	c := budgeted(bucketOf(2)) // two extra attempts
	c.Methods[0].Mode, c.MaxWaiting = policy.ModeObserve, 1
	play(t, c, func(t *testing.T, s scene) {
		s.On("*", restarting)
		var reasons []string
		for range 4 {
			_, err := s.call(t.Context(), get)
			reasons = append(reasons, string(reasonOf(err)))
		}
		if got := strings.Join(reasons, " "); got != "mode_off mode_off budget_exhausted budget_exhausted" {
			t.Errorf("the calls end with %s", got)
		}
		if _, err := s.call(t.Context(), create, interceptor.Idempotent()); reasonOf(err) != policy.ReasonBudgetExhausted || s.Count(create) != 3 {
			t.Errorf("a method that is enforced: %s, %d attempts; want two extra attempts", reasonOf(err), s.Count(create))
		}
		b := inUse(s.retrier)
		if len(b) != 2 || b[0].Shadow || !b[1].Shadow || b[0].Granted != 2 || b[0].Refused != 1 || b[1].Granted != 2 || b[1].Refused != 2 {
			t.Errorf("%+v; want the budget, then its shadow", b)
		}
	})
}

// trailers is a call at a server of which only the trailer is kept.
type trailers struct{ kept *metadata.MD }

func (trailers) Method() string                    { return get }
func (trailers) SetHeader(metadata.MD) error       { return nil }
func (trailers) SendHeader(metadata.MD) error      { return nil }
func (t trailers) SetTrailer(md metadata.MD) error { *t.kept = metadata.Join(*t.kept, md); return nil }

// In a trial, existing retries continue: no warning asks to remove them.
func TestObserve_BesideOtherRetries(t *testing.T) {
	twice := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		_ = invoke(ctx, method, req, reply, cc, opts...)
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeObserve, policy.ModeOff} {
		t.Run(string(mode), func(t *testing.T) {
			c := config(plain())
			c.Mode = mode
			play(t, c, func(t *testing.T, s scene) {
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(twice))...)
				s.On(get, down())
				outer := metadata.AppendToOutgoingContext(t.Context(), "x-retry-attempty", "2")
				_, _ = s.call(outer, get, retry.WithMax(2))
				if want := map[bool]int{true: 3}[mode == policy.ModeEnforce]; len(s.warnings) != want {
					t.Errorf("%d warnings %q; want %d", len(s.warnings), s.warnings, want)
				}
			})
		})
	}
}

// DialOptions switch gRPC's own retries off in every mode; Unary and Stream keep them.
func TestMode_GRPCRetries(t *testing.T) {
	const grpcs = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s",
		"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	alone := func(s scene) []grpc.DialOption { return s.retrier.DialOptions() }
	beside := func(s scene) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithUnaryInterceptor(s.retrier.Unary()), grpc.WithStreamInterceptor(s.retrier.Stream())}
	}
	for name, row := range map[string]struct {
		mode     policy.Mode
		dial     func(scene) []grpc.DialOption
		config   string
		attempts int
	}{
		"enforced":                         {policy.ModeEnforce, alone, grpcs, 4},
		"observed":                         {policy.ModeObserve, alone, grpcs, 1},
		"off":                              {policy.ModeOff, alone, grpcs, 1},
		"off, and gRPC has no policy":      {policy.ModeOff, alone, "{}", 1},
		"off, and gRPC's own are kept":     {policy.ModeOff, beside, grpcs, 3},
		"observed, and gRPC's own as well": {policy.ModeObserve, beside, grpcs, 3},
	} {
		for _, kind := range []string{"unary", "stream"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				c := config(plain())
				c.Mode = row.mode
				play(t, c, func(t *testing.T, s scene) {
					s.conn = s.Dial(t, append(row.dial(s), grpc.WithDefaultServiceConfig(row.config))...)
					s.On(get, down())
					for range 2 {
						s.Reset()
						s.On(get, down())
						_ = s.once(t.Context(), kind, get)
						if s.Count(get) != row.attempts {
							t.Errorf("%d attempts; want %d", s.Count(get), row.attempts)
						}
					}
					want := map[string]int{"observed": 1}[name] // nobody retries, though the mode is to change nothing
					if len(s.warnings) != want {
						t.Errorf("warnings %q; want %d", s.warnings, want)
					}
				})
			})
		}
	}
}
