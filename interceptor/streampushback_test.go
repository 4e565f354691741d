// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
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

func TestPushbackOnAStreamIsObeyedInAllItsForms(t *testing.T) {
	stop := "[] pushback_stop"
	for name, row := range map[string]struct {
		step testserver.Step
		want string
	}{
		"a delay":                 {down().Pushback("700"), "[700ms] succeeded"},
		"no delay":                {down().Pushback("0"), "[0s] succeeded"},
		"retry info":              {down().RetryInfo(3 * time.Second), "[3s] succeeded"},
		"retry-after":             {down().RetryAfter("2"), "[2s] succeeded"},
		"pushback wins":           {down().Pushback("700").RetryInfo(3 * time.Second).RetryAfter("2"), "[700ms] succeeded"},
		"retry info wins":         {down().RetryInfo(3 * time.Second).RetryAfter("2"), "[3s] succeeded"},
		"after headers":           {down().Header(metadata.Pairs("from", "1")).Pushback("700"), "[700ms] succeeded"},
		"stop":                    {down().Pushback("-1"), stop},
		"nonsense":                {down().Pushback("soon"), stop},
		"empty":                   {down().Pushback(""), stop},
		"a plus sign":             {down().Pushback("+5"), stop},
		"leading zeros":           {down().Pushback("005"), stop},
		"a fraction":              {down().Pushback("1.5"), stop},
		"two values":              {down().Pushback("5", "5"), stop},
		"more than 32 bits":       {down().Pushback("2147483648"), stop},
		"more than is waited for": {down().Pushback("300001"), stop},
		"a code that is not retried": {
			testserver.Fail(codes.NotFound).Pushback("5"),
			"[] non_retryable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.step, testserver.Play(testserver.Receive(1), say("a")))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "x")
				_, _ = receive(stream)
				if got := fmt.Sprint(s.waits(), " ", s.calls[0].Reason); got != row.want {
					t.Errorf("%s; want %s", got, row.want)
				}
			})
		})
	}
}

func TestPushbackRestartsTheBackoffOfAStream(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), down().Pushback("700"), down(), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, t.Context(), serverStream)
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || s.waits() != "[100ms 700ms 100ms]" {
			t.Errorf("%v, %v, waits %s", got, err, s.waits())
		}
	})
}

func TestEveryAttemptOfAStreamTellsHowManyWentBefore(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), testserver.Play(testserver.Receive(1), say("a")))
		stream := s.open(t, metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme"), bidiStream)
		send(t, stream, "x")
		_, _ = receive(stream)
		var counts []string
		for _, a := range s.Attempts() {
			counts = append(counts, fmt.Sprint(a.Metadata["grpc-previous-rpc-attempts"], a.Metadata["tenant"]))
		}
		if got := strings.Join(counts, " "); got != "[] [acme] [1] [acme] [2] [acme]" {
			t.Errorf("the server saw %s", got)
		}
	})
}

func TestAStreamThatMayNotFollowEndsWithTheServersErrorAtOnce(t *testing.T) {
	for want, row := range map[policy.Reason]struct {
		method  string
		retry   func(*policy.RetrySpec)
		timeout time.Duration
	}{
		policy.ReasonNotIdempotent:    {method: create},
		policy.ReasonDeadlineTooClose: {method: get, timeout: 90 * ms},
		policy.ReasonBudgetExhausted:  {method: get, retry: func(r *policy.RetrySpec) { r.Budget = "" }},
		policy.ReasonNonRetryable:     {method: get, retry: func(r *policy.RetrySpec) { r.Codes = policy.Codes(codes.Aborted) }},
	} {
		t.Run(string(want), func(t *testing.T) {
			retry := plain()
			if row.retry != nil {
				row.retry(&retry)
			}
			p := &purse{Budget: nil, grants: 0}
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(row.method, down())
				ctx := t.Context()
				if row.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.timeout)
					defer cancel()
				}
				stream, err := s.conn.NewStream(ctx, bidiStream, row.method)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				send(t, stream, "x")
				_, err = receive(stream)
				if status.Code(err) != codes.Unavailable || reasonOf(err) != want || s.Count("*") != 1 || time.Since(start) != 0 {
					t.Errorf("%v (%s) after %d attempts and %v; want %s at once", err, reasonOf(err), s.Count("*"), time.Since(start), want)
				}
			}, interceptor.WithBudget("", p))
		})
	}
}

func TestAStreamOfAnUnsafeMethodIsRepeatedWhereItIsDeclaredSafe(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(create, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream, err := s.conn.NewStream(t.Context(), bidiStream, create, interceptor.Idempotent())
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestDisableLetsAStreamPassBy(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		stream := s.open(t, t.Context(), bidiStream, interceptor.Disable())
		send(t, stream, "x")
		if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 1 || len(s.calls) != 0 {
			t.Errorf("%v after %d attempts, calls %+v", err, s.Count(get), s.calls)
		}
	})
}
