// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// judge is a classifier that counts its calls.
type judge struct {
	mu    sync.Mutex // guards asked
	asked int
}

func (j *judge) classify(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
	j.mu.Lock()
	j.asked++
	j.mu.Unlock()
	if m, ok := reply.(*wrapperspb.StringValue); ok && err == nil && m.GetValue() == "not yet" {
		return interceptor.VerdictNotYet
	}
	switch status.Convert(err).Message() {
	case "deadlock":
		return interceptor.VerdictRetry
	case "corrupt":
		return interceptor.VerdictFinal
	case "gone":
		return interceptor.VerdictFinal
	default:
		return interceptor.VerdictByCode
	}
}

func TestClassifier_NotYet(t *testing.T) {
	j, purse := new(judge), &purse{grants: 9}
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, text("not yet").Times(2), text("ready"))
		if got, err := s.call(t.Context(), get); got != "ready" || err != nil || s.waits() != "[100ms 200ms]" {
			t.Errorf("%q, %v, waits %s", got, err, s.waits())
		}
		if j.asked != 3 || purse.failed != 0 {
			t.Errorf("asked %d times; the budget: %v", j.asked, purse)
		}
	}, interceptor.WithClassifier(j.classify), interceptor.WithBudget("", forAll(purse)))
}

// says returns a classifier that always returns the same verdict, and counts in asked.
func says(v interceptor.Verdict, asked *int) interceptor.Option {
	return interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
		*asked++
		return v
	})
}

func TestClassifier_ReplyVerdicts(t *testing.T) {
	for name, row := range map[string]struct {
		verdict  interceptor.Verdict
		attempts int
		reason   policy.Reason
	}{
		"as code":   {interceptor.VerdictByCode, 1, policy.ReasonSucceeded},
		"final":     {interceptor.VerdictFinal, 1, policy.ReasonSucceeded},
		"try again": {interceptor.VerdictRetry, 4, policy.ReasonAttemptsExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, text("reply"))
				if got, err := s.call(t.Context(), get); got != "reply" || err != nil || s.calls[0].Reason != row.reason || s.calls[0].Err != nil {
					t.Errorf("%q, %v, told of %+v; want %s", got, err, s.calls[0], row.reason)
				}
				if s.Count(get) != row.attempts || asked != row.attempts {
					t.Errorf("%d attempts, asked %d times; want %d", s.Count(get), asked, row.attempts)
				}
			}, says(row.verdict, &asked))
		})
	}
}

func TestClassifier_CancelledAfterNotYet(t *testing.T) {
	asked := 0
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("not yet"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		got, err := s.call(ctx, get)
		want := "context canceled before attempt 2; no server had returned an error"
		if status.Code(err) != codes.Canceled || status.Convert(err).Message() != want || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%q, %v (%s)", got, err, reasonOf(err))
		}
	}, says(interceptor.VerdictRetry, &asked))
}

func TestClassifier_OneAttempt(t *testing.T) {
	asked := 0
	play(t, spec.Config{}, func(t *testing.T, s scene) {
		s.On(get, text("not yet"))
		if got, err := s.call(t.Context(), get); got != "not yet" || err != nil || asked != 0 {
			t.Errorf("%q, %v, asked %d times", got, err, asked)
		}
	}, says(interceptor.VerdictRetry, &asked))
}

// An inner interceptor that returns an error by itself may have left its attempt running, which writes into the reply.
func TestClassifier_LeftRunning(t *testing.T) {
	t.Parallel()
	for _, left := range []bool{false, true} {
		var seen []any
		classify := interceptor.WithClassifier(func(_ context.Context, _ string, reply any, _ error) interceptor.Verdict {
			seen = append(seen, reply)
			return interceptor.VerdictFinal
		})
		server := testserver.Start(t)
		server.On(get, testserver.Fail(codes.Unavailable))
		inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if left {
				return status.Error(codes.Unavailable, "of the interceptor")
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		conn := server.Dial(t, append(mustNew(t, mustSet(t, config(plain())), classify).DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
		_ = conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue))
		if len(seen) != 1 || (seen[0] == nil) != left {
			t.Errorf("left running: %v; the classifier has seen %v", left, seen)
		}
	}
}
