// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// judge is a classifier, and how often it was asked.
type judge struct {
	mu    sync.Mutex // guards asked
	asked int
}

func (j *judge) classify(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
	j.mu.Lock()
	j.asked++
	j.mu.Unlock()
	if m, ok := reply.(*wrapperspb.StringValue); ok && err == nil && m.GetValue() == "not yet" {
		return interceptor.VerdictRetry
	}
	switch status.Convert(err).Message() {
	case "deadlock":
		return interceptor.VerdictAs(codes.Unavailable)
	case "corrupt":
		return interceptor.VerdictFinal
	case "gone":
		return interceptor.VerdictAs(codes.NotFound)
	case "nonsense":
		return interceptor.VerdictAs(codes.OK)
	default:
		return interceptor.VerdictByCode
	}
}

func TestAReplyMayMeanNotYet(t *testing.T) {
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
	}, interceptor.WithClassifier(j.classify), interceptor.WithBudget("", purse))
}

func TestTheLastReplyIsTheCallersEvenIfItMeansNotYet(t *testing.T) {
	for name, c := range map[string]policy.Config{"retries": config(plain()), "hedges": hedged()} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, text("not yet"))
				if got, err := s.call(t.Context(), get); got != "not yet" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				if last := s.calls[0]; last.Reason != policy.ReasonAttemptsExhausted || last.Code != codes.OK {
					t.Errorf("%+v", last)
				}
			}, interceptor.WithClassifier(new(judge).classify))
		})
	}
}

func TestAnErrorMayMeanSomethingElseThanItsCode(t *testing.T) {
	for message, row := range map[string]struct {
		attempts int
		reason   policy.Reason
	}{
		"deadlock": {4, policy.ReasonAttemptsExhausted}, // UNKNOWN is not listed
		"other":    {1, policy.ReasonNonRetryable},
		"nonsense": {1, policy.ReasonNonRetryable},
	} {
		t.Run(message, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unknown, message))
				_, err := s.call(t.Context(), get)
				if status.Code(err) != codes.Unknown || reasonOf(err) != row.reason || s.Count(get) != row.attempts {
					t.Errorf("%v (%s) after %d attempts; want %s after %d", err, reasonOf(err), s.Count(get), row.reason, row.attempts)
				}
			}, interceptor.WithClassifier(new(judge).classify))
		})
	}
	for _, message := range []string{"corrupt", "gone"} {
		t.Run(message, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Fail(codes.Unavailable, message))
				if _, err := s.call(t.Context(), get); reasonOf(err) != policy.ReasonNonRetryable || s.Count(get) != 1 {
					t.Errorf("%v (%s) after %d attempts", err, reasonOf(err), s.Count(get))
				}
			}, interceptor.WithClassifier(new(judge).classify))
		})
	}
}

func TestAClassifierDoesNotMakeAMethodSafe(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(create, text("not yet"))
		if got, err := s.call(t.Context(), create); got != "not yet" || err != nil || s.Count(create) != 1 {
			t.Errorf("%q, %v after %d attempts", got, err, s.Count(create))
		}
		if s.calls[0].Reason != policy.ReasonNotIdempotent {
			t.Errorf("%s", s.calls[0].Reason)
		}
	}, interceptor.WithClassifier(new(judge).classify))
}

func TestAnAbandonedAttemptIsNotJudged(t *testing.T) {
	j := new(judge)
	retry := besides()
	retry.OnAttemptTimeout = policy.OnTimeoutRetry
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), text("second"))
		began := time.Now()
		if got, err := s.call(t.Context(), get); got != "second" || err != nil || time.Since(began) != 1100*ms {
			t.Errorf("%q, %v after %v", got, err, time.Since(began))
		}
		if j.asked != 1 {
			t.Errorf("asked %d times; want once, about the second", j.asked)
		}
	}, interceptor.WithClassifier(j.classify))
}

func TestTheEndOfAStreamIsJudged(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unknown, "deadlock"), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF { //nolint:errorlint // as gRPC has it
			t.Errorf("%v, %v", got, err)
		}
	}, interceptor.WithClassifier(new(judge).classify))
}

func TestAPolicyMayLetACodeCountAsAnother(t *testing.T) {
	retry := plain()
	retry.Overrides = []policy.CodeOverride{{Codes: policy.Codes(codes.Unknown), Contains: "deadlock", As: codes.Unavailable}}
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unknown, "a deadlock was found"), testserver.Fail(codes.Unknown, "disk full"))
		_, err := s.call(t.Context(), get)
		if status.Convert(err).Message() != "disk full" || status.Code(err) != codes.Unknown || s.Count(get) != 2 {
			t.Errorf("%v after %d attempts", err, s.Count(get))
		}
	})
}
