// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// says is a classifier that always gives the same verdict, and counts in asked.
func says(v interceptor.Verdict, asked *int) interceptor.Option {
	return interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
		*asked++
		return v
	})
}

func TestAVerdictAboutAReply(t *testing.T) {
	for name, row := range map[string]struct {
		verdict  interceptor.Verdict
		attempts int
		reason   policy.Reason
	}{
		"as code":                   {interceptor.VerdictByCode, 1, policy.ReasonSucceeded},
		"final":                     {interceptor.VerdictFinal, 1, policy.ReasonSucceeded},
		"try again":                 {interceptor.VerdictRetry, 4, policy.ReasonAttemptsExhausted},
		"means a listed code":       {interceptor.VerdictAs(codes.Unavailable), 4, policy.ReasonAttemptsExhausted},
		"means one not listed":      {interceptor.VerdictAs(codes.NotFound), 1, policy.ReasonNonRetryable},
		"means OK":                  {interceptor.VerdictAs(codes.OK), 1, policy.ReasonSucceeded},
		"means the last code":       {interceptor.VerdictAs(codes.Unauthenticated), 1, policy.ReasonNonRetryable},
		"means one that is unknown": {interceptor.VerdictAs(17), 1, policy.ReasonSucceeded},
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

func TestACallThatIsCancelledAfterANotYetSaysSo(t *testing.T) {
	asked := 0
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("not yet"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*ms, cancel)
		got, err := s.call(ctx, get)
		want := "context canceled before attempt 2; the attempt before was answered, but not yet"
		if status.Code(err) != codes.Canceled || status.Convert(err).Message() != want || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%q, %v (%s)", got, err, reasonOf(err))
		}
	}, says(interceptor.VerdictRetry, &asked))
}

func TestANotYetIsTheCallersWhenAnotherGateIsShut(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	for _, reason := range []policy.Reason{policy.ReasonBudgetExhausted, policy.ReasonBreakerOpen, policy.ReasonDeadlineTooClose} {
		t.Run(string(reason), func(t *testing.T) {
			f, budget := &fuse{limit: 99}, &purse{}
			if reason != policy.ReasonBudgetExhausted {
				budget.grants = 9
			}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(get, text("not yet"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				switch reason {
				case policy.ReasonBreakerOpen:
					time.AfterFunc(50*ms, f.blow)
				case policy.ReasonDeadlineTooClose:
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), 50*ms)
				}
				defer cancel()
				got, err := s.call(ctx, get)
				if got != "not yet" || err != nil || s.calls[0].Reason != reason || s.Count(get) != 1 {
					t.Errorf("%q, %v, told of %+v", got, err, s.calls[0])
				}
				if budget.bad != 0 || budget.failed != 0 || f.String() != "1 [OK]" {
					t.Errorf("told of a failure: %v, %v", budget, f)
				}
			}, withFuse(f), interceptor.WithBudget("", budget), interceptor.WithClassifier(new(judge).classify))
		})
	}
}

// An error without a status comes from an interceptor further in; nothing follows it, unless the
// classifier knows it.
func TestAnErrorWithoutAStatusMayBeJudged(t *testing.T) {
	for name, row := range map[string]struct {
		verdict  interceptor.Verdict
		attempts int
	}{"not known": {interceptor.VerdictByCode, 1}, "known": {interceptor.VerdictRetry, 4}, "means": {interceptor.VerdictAs(codes.Unavailable), 4}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, attempts, own := 0, 0, errors.New("no token")
				unary := mustNew(t, mustSet(t, config(plain())), quiet, says(row.verdict, &asked)).Unary()
				err := unary(t.Context(), get, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					attempts++
					return own
				})
				if !errors.Is(err, own) || attempts != row.attempts || asked != row.attempts {
					t.Errorf("%v after %d attempts, asked %d times; want %d", err, attempts, asked, row.attempts)
				}
			})
		})
	}
}

func TestOnlyCallsWithRetriesAreJudged(t *testing.T) {
	asked := 0
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.On(get, text("not yet"))
		if got, err := s.call(t.Context(), get); got != "not yet" || err != nil || asked != 0 {
			t.Errorf("%q, %v, asked %d times", got, err, asked)
		}
	}, says(interceptor.VerdictRetry, &asked))
}

func TestMessagesOfAStreamAreNotJudged(t *testing.T) {
	asked := 0
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(1), say("not yet", "b")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "list")
		if got, err := receive(stream); fmt.Sprint(got) != "[not yet b]" || err != io.EOF || asked != 0 {
			t.Errorf("%v, %v, asked %d times", got, err, asked)
		}
	}, says(interceptor.VerdictRetry, &asked))
}
