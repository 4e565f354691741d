// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func mustPolicy(t testing.TB, change func(*spec.Retry)) *policy.Policy {
	t.Helper()
	retry := spec.Retry{
		MaxAttempts:          4,
		Backoff:              backoff.Config{Initial: 100 * ms, Max: time.Second, Multiplier: 2, Jitter: "NONE"},
		RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.ResourceExhausted},
	}
	if change != nil {
		change(&retry)
	}
	return policyOf(t, spec.Policy{Retry: &retry})
}

func failed(code codes.Code) decision.Outcome {
	return decision.Outcome{Status: status.New(code, "")}
}

func pushed(code codes.Code, values ...string) decision.Outcome {
	out := failed(code)
	out.Trailer = metadata.MD{decision.PushbackTrailer: values}
	return out
}

// first is the situation after the first attempt of a call that may be retried, with all that it needs.
func first(p *policy.Policy, out decision.Outcome) decision.Situation {
	return decision.Situation{
		Policy: p, Class: decision.Classify(p, &out, noon), Attempts: 1, MaxAttempts: p.MaxAttempts(), Safe: true,
		Evidence: evidence.Evidence{Known: 10}, Left: decision.NoDeadline,
	}
}

// slowEverywhere is what a method shows whose last answers were all slow.
var slowEverywhere = evidence.Evidence{Known: 10, Slow: 10, VerySlow: 10}

// decided returns the decision in a situation that was changed, with chance one half.
func decided(p *policy.Policy, out decision.Outcome, changes ...func(*decision.Situation)) decision.Decision {
	s := first(p, out)
	s.Chance = 0.5
	for _, change := range changes {
		change(&s)
	}
	return decision.Decide(&s)
}

// row is a situation before it is put together.
type row struct {
	decision.Situation

	out  decision.Outcome
	spec func(*spec.Retry)
}

// inRetry puts the call inside a retry of the server that makes it, and sets the rule SUPPRESS.
func inRetry(s *row) {
	s.InRetry = true
	s.spec = func(r *spec.Retry) { r.Chain = "SUPPRESS" }
}

// slow makes the outcome that of a slow attempt.
func slow(s *row) {
	s.out = failed(codes.DeadlineExceeded)
	s.out.TimedOut = true
}

// The pipeline, step by step. Every row starts from a call that would be retried and changes one thing. Rows that change two
// things show which check comes first.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*row)
		reason policy.Reason
		delay  time.Duration
		fails  int // whether it counts as a failure for the budget: 1
	}{
		{"a retryable failure is retried", func(*row) {}, policy.ReasonRetry, 100 * ms, 1},

		{"1 a code that is not listed", func(s *row) { s.out = failed(codes.NotFound) }, policy.ReasonNonRetryable, 0, 0},
		{"1 a code that no gRPC knows", func(s *row) { s.out = failed(codes.Code(46)) }, policy.ReasonNonRetryable, 0, 0},
		{"1 an outcome that is final", func(s *row) { s.out.Final = true }, policy.ReasonNonRetryable, 0, 0},
		{"1 before 2", func(s *row) { s.out = failed(codes.NotFound); s.Committed = decision.CommitMessage }, policy.ReasonNonRetryable, 0, 0},

		{"2 the application has seen the attempt", func(s *row) { s.Committed = decision.CommitMessage }, policy.ReasonCommitted, 0, 1},
		{"2 before 3", func(s *row) { s.Committed = decision.CommitMessage; s.Attempts = 4 }, policy.ReasonCommitted, 0, 1},

		{"3 one attempt left", func(s *row) { s.Attempts = 3 }, policy.ReasonRetry, 100 * ms, 1},
		{"3 no attempt left", func(s *row) { s.Attempts = 4 }, policy.ReasonAttemptsExhausted, 0, 1},
		{"3 the Retrier's cap", func(s *row) { s.Attempts, s.MaxAttempts = 2, 2 }, policy.ReasonAttemptsExhausted, 0, 1},
		{"3 the Retrier's cap is no promise", func(s *row) { s.Attempts, s.MaxAttempts = 4, 9 }, policy.ReasonAttemptsExhausted, 0, 1},
		{"3 fewer attempts after some codes", func(s *row) {
			s.Attempts = 2
			s.spec = func(r *spec.Retry) {
				r.PerCode = []spec.Code{{Codes: []codes.Code{codes.Unavailable}, MaxAttempts: 2}}
			}
		}, policy.ReasonAttemptsExhausted, 0, 1},
		{"3 before 4", func(s *row) { s.Attempts = 4; s.Safe = false }, policy.ReasonAttemptsExhausted, 0, 1},

		{"4 not declared safe", func(s *row) { s.Safe = false }, policy.ReasonNotIdempotent, 0, 1},
		{"4 not declared safe, but never left the client", func(s *row) { s.Safe = false; s.out.Origin = decision.Unsent }, policy.ReasonRetry, 100 * ms, 0},
		{"a stop comes before the question of safety", func(s *row) { s.Safe = false; s.out = pushed(codes.Unavailable, "-1") }, policy.ReasonPushbackStop, 0, 1},

		{"5 the server forbids it", func(s *row) { s.out = pushed(codes.Unavailable, "-1") }, policy.ReasonPushbackStop, 0, 1},
		{"5 the server cannot be understood", func(s *row) { s.out = pushed(codes.Unavailable, "+5") }, policy.ReasonPushbackStop, 0, 1},
		{"5 the server says two things", func(s *row) { s.out = pushed(codes.Unavailable, "7", "8") }, policy.ReasonPushbackStop, 0, 1},
		{"5 the server names a delay", func(s *row) { s.out = pushed(codes.Unavailable, "5000") }, policy.ReasonRetry, 5 * time.Second, 1},
		{"5 the longest delay that is obeyed", func(s *row) { s.out = pushed(codes.Unavailable, "300000") }, policy.ReasonRetry, 300 * time.Second, 1},
		{"5 a longer one ends the call", func(s *row) { s.out = pushed(codes.Unavailable, "300001") }, policy.ReasonPushbackStop, 0, 1},
		{"5 a delay does not make a code retryable", func(s *row) { s.out = pushed(codes.NotFound, "5") }, policy.ReasonNonRetryable, 0, 0},
		{"5 a stop counts as a failure after any code", func(s *row) { s.out = pushed(codes.NotFound, "-1") }, policy.ReasonNonRetryable, 0, 1},
		{"5 no server has seen the attempt, so its failure does not count", func(s *row) { s.out.Origin = decision.Unseen }, policy.ReasonRetry, 100 * ms, 0},
		{"5 the server has forbidden it before", func(s *row) { s.Stopped = true }, policy.ReasonPushbackStop, 0, 1},
		{"5 before 9", func(s *row) { s.out = pushed(codes.Unavailable, "-1"); s.Left = 0 }, policy.ReasonPushbackStop, 0, 1},

		{"5 another attempt has followed", func(s *row) { s.Followed = true }, policy.ReasonFollowed, 0, 1},
		{"5 before that", func(s *row) { s.out = pushed(codes.Unavailable, "-1"); s.Followed = true }, policy.ReasonPushbackStop, 0, 1},
		{"5 before 6", func(s *row) { s.out = pushed(codes.Unavailable, "-1"); inRetry(s) }, policy.ReasonPushbackStop, 0, 1},

		{"6 inside of a retry, ALLOW", func(s *row) { s.InRetry = true; s.Attempts = 3 }, policy.ReasonRetry, 100 * ms, 1},
		{"6 inside of a retry, SUPPRESS", inRetry, policy.ReasonChainStop, 0, 1},
		{"6 inside of a first attempt, SUPPRESS", func(s *row) { inRetry(s); s.InRetry = false }, policy.ReasonRetry, 100 * ms, 1},
		{"6 before 7", func(s *row) { inRetry(s); s.Gate = policy.ReasonBreakerOpen }, policy.ReasonChainStop, 0, 1},

		{"7 a mode that forbids it", func(s *row) { s.Off, s.Gate = policy.ReasonModeOff, policy.ReasonBreakerOpen }, policy.ReasonModeOff, 0, 1},
		{"6 before a mode that forbids it", func(s *row) { inRetry(s); s.Off = policy.ReasonClosed }, policy.ReasonChainStop, 0, 1},
		{"7 the circuit is open", func(s *row) { s.Gate = policy.ReasonBreakerOpen }, policy.ReasonBreakerOpen, 0, 1},
		{"7 before 9", func(s *row) { s.Gate = policy.ReasonBreakerOpen; s.Left = 0 }, policy.ReasonBreakerOpen, 0, 1},

		{"8 a failure while all answers are slow", func(s *row) { s.Evidence = slowEverywhere }, policy.ReasonSlowEverywhere, 0, 1},
		{"8 a slow attempt while all answers are slow", func(s *row) { slow(s); s.Evidence = slowEverywhere }, policy.ReasonSlowEverywhere, 0, 0},
		{"8 an attempt that was not sent while all answers are slow", func(s *row) { s.Evidence = slowEverywhere; s.out.Origin = decision.Unsent }, policy.ReasonRetry, 100 * ms, 0},
		{"8 a slow attempt while the answers are fast", slow, policy.ReasonRetry, 100 * ms, 0},
		{"8 a slow attempt while some answers are slow", func(s *row) { slow(s); s.Evidence.Slow = 3 }, policy.ReasonNotProvenFast, 0, 0},
		{"8 a failure while some answers are slow", func(s *row) { s.Evidence.Slow = 3 }, policy.ReasonRetry, 100 * ms, 1},
		{"8 a server's own DEADLINE_EXCEEDED while some answers are slow", func(s *row) {
			s.out, s.Evidence.Slow = failed(codes.DeadlineExceeded), 3
			s.spec = func(r *spec.Retry) { r.RetryableStatusCodes = []codes.Code{codes.DeadlineExceeded} }
		}, policy.ReasonRetry, 100 * ms, 1},
		{"7 before 8", func(s *row) { slow(s); s.Evidence, s.Gate = slowEverywhere, policy.ReasonBreakerOpen }, policy.ReasonBreakerOpen, 0, 0},
		{"all answers before some", func(s *row) { slow(s); s.Evidence = slowEverywhere }, policy.ReasonSlowEverywhere, 0, 0},
		{"7 admission before 8", func(s *row) { slow(s); s.Evidence.Slow, s.Gate = 3, policy.ReasonOverloaded }, policy.ReasonOverloaded, 0, 0},
		{"8 before 9", func(s *row) { slow(s); s.Evidence.Slow, s.Left = 3, 0 }, policy.ReasonNotProvenFast, 0, 0},

		{"9 delay and attempt just fit", func(s *row) { s.Left = 101 * ms }, policy.ReasonRetry, 100 * ms, 1},
		{"9 no delay, and the attempt just fits", func(s *row) { s.out = pushed(codes.Unavailable, "0"); s.Left = ms }, policy.ReasonRetry, 0, 1},
		{"9 the attempt would have too little time", func(s *row) { s.Left = 101*ms - 1 }, policy.ReasonDeadlineTooClose, 0, 1},
		{"9 the deadline has passed", func(s *row) { s.Left = -time.Hour }, policy.ReasonDeadlineTooClose, 0, 1},
		{"9 pushback does not fit", func(s *row) { s.out = pushed(codes.Unavailable, "5000"); s.Left = time.Second }, policy.ReasonDeadlineTooClose, 0, 1},
		{"7 a queue that admission sees", func(s *row) { s.Gate = policy.ReasonOverloaded }, policy.ReasonOverloaded, 0, 1},
		{"7 before 9", func(s *row) { s.Gate = policy.ReasonOverloaded; s.Left = 0 }, policy.ReasonOverloaded, 0, 1},

		{"a classifier asks for another attempt after any code", func(s *row) { s.out = failed(codes.NotFound); s.out.Again = true }, policy.ReasonRetry, 100 * ms, 1},
		{"a failure told in a reply counts", func(s *row) { s.out = failed(codes.OK); s.out.Again = true }, policy.ReasonRetry, 100 * ms, 1},
		{"an answer that means not yet is no failure", func(s *row) { s.out = failed(codes.OK); s.out.Again, s.out.Well = true, true }, policy.ReasonRetry, 100 * ms, 0},
		{"nor is an error that means not yet", func(s *row) { s.out = failed(codes.NotFound); s.out.Again, s.out.Well = true, true }, policy.ReasonRetry, 100 * ms, 0},
		{"a classifier names a delay", func(s *row) { s.out = failed(codes.Unavailable); s.out.Delay = 5 * time.Second }, policy.ReasonRetry, 5 * time.Second, 1},
		{"the server's pushback comes before a classifier's delay", func(s *row) { s.out = pushed(codes.Unavailable, "7000"); s.out.Delay = 5 * time.Second }, policy.ReasonRetry, 7 * time.Second, 1},
		{"a classifier's delay does not make a code retryable", func(s *row) { s.out = failed(codes.NotFound); s.out.Delay = ms }, policy.ReasonNonRetryable, 0, 0},

		{"an attempt timeout is retryable without being listed", func(s *row) {
			s.out = failed(codes.DeadlineExceeded)
			s.out.TimedOut = true
		}, policy.ReasonRetry, 100 * ms, 0},
		{"an attempt timeout of an unsafe call", func(s *row) {
			s.out = failed(codes.DeadlineExceeded)
			s.out.TimedOut, s.Safe = true, false
		}, policy.ReasonNotIdempotent, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := row{Situation: first(mustPolicy(t, nil), failed(codes.Unavailable)), out: failed(codes.Unavailable)}
			test.change(&s)
			s.Policy = mustPolicy(t, s.spec)
			s.Class = decision.Classify(s.Policy, &s.out, noon)
			d := decision.Decide(&s.Situation)
			if d.Reason != test.reason || d.Delay != test.delay || d.Retry != (test.reason == policy.ReasonRetry) {
				t.Errorf("Decide = %+v; want reason %s, delay %v", d, test.reason, test.delay)
			}
			if s.Fails() != (test.fails == 1) {
				t.Errorf("it counts as a failure: %v; want %d", s.Fails(), test.fails)
			}
		})
	}
}

// Refusal repeats what may have changed since the decision.
func TestRefusal(t *testing.T) {
	t.Parallel()
	waits := func(s *decision.Situation) { s.Waiting, s.Wait, s.Left = true, time.Second, time.Second+ms }
	for name, row := range map[string]struct {
		change func(*decision.Situation)
		want   policy.Reason
	}{
		"it may be sent":                 {func(*decision.Situation) {}, ""},
		"it may wait":                    {waits, ""},
		"a mode":                         {func(s *decision.Situation) { waits(s); s.Off, s.Unconnected = policy.ReasonModeOff, true }, policy.ReasonModeOff},
		"no connection":                  {func(s *decision.Situation) { waits(s); s.Unconnected, s.Left = true, 0 }, policy.ReasonNotConnected},
		"no time":                        {func(s *decision.Situation) { waits(s); s.Left--; s.Gate = policy.ReasonBreakerOpen }, policy.ReasonDeadlineTooClose},
		"a gate":                         {func(s *decision.Situation) { s.Gate = policy.ReasonOverloaded }, policy.ReasonOverloaded},
		"what does not wait has no time": {func(s *decision.Situation) { s.Unconnected, s.Left = true, 0 }, ""},
	} {
		s := decision.Situation{Left: decision.NoDeadline}
		if row.change(&s); decision.Refusal(&s) != row.want {
			t.Errorf("%s: %q; want %q", name, decision.Refusal(&s), row.want)
		}
	}
}

// delays runs a call to its end and returns the waits between its attempts.
func delays(t *testing.T, p *policy.Policy, r float64, outs ...decision.Outcome) []time.Duration {
	t.Helper()
	var list []time.Duration
	var backoff decision.Backoff
	for i, out := range outs {
		d := decided(p, out, func(s *decision.Situation) { s.Chance, s.Attempts, s.Backoff = r, i+1, backoff })
		if !d.Retry {
			t.Fatalf("attempt %d: %s; want a retry", i+1, d.Reason)
		}
		backoff = d.Backoff
		list = append(list, d.Delay)
	}
	return list
}

func TestDecidePushbackRestartsBackoff(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *spec.Retry) { r.MaxAttempts = 10 })
	down := failed(codes.Unavailable)
	got := delays(t, p, 0, down, down, pushed(codes.Unavailable, "7000"), down, down)
	want := "[100ms 200ms 7s 100ms 200ms]"
	if fmt.Sprint(got) != want {
		t.Errorf("waits %v; want %s", got, want)
	}
}

func TestDecidePushbackIsFloor(t *testing.T) {
	t.Parallel()
	for r, want := range map[float64]time.Duration{0: 5 * time.Second, 0.5: 5250 * ms, almostOne: 5500*ms - 1} {
		if got := delays(t, mustPolicy(t, nil), r, pushed(codes.Unavailable, "5000")); got[0] != want {
			t.Errorf("chance %v: wait %v; want %v", r, got[0], want)
		}
	}
}

// RetryInfo and retry-after say "at least": the policy's jitter goes on top, of a backoff as long as the server's delay.
func TestDecideAtLeast(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		backoff backoff.Config
		seconds string
		left    time.Duration
		want    string // with the chances 0, a half, and almost 1
	}{
		"FULL":                  {backoff.Config{Initial: 100 * ms, Max: 10 * time.Second, Multiplier: 2, Jitter: "FULL"}, "1", 0, "[1s 1.5s 2s]"},
		"EQUAL":                 {backoff.Config{Initial: 100 * ms, Max: 10 * time.Second, Multiplier: 2, Jitter: "EQUAL"}, "1", 0, "[1s 1.25s 1.5s]"},
		"PROPORTIONAL":          {backoff.Config{Initial: 100 * ms, Max: 10 * time.Second, Multiplier: 2, Jitter: "PROPORTIONAL"}, "1", 0, "[1s 1.2s 1.4s]"},
		"NONE: a tenth":         {backoff.Config{Initial: 100 * ms, Max: 10 * time.Second, Multiplier: 2, Jitter: "NONE"}, "1", 0, "[1s 1.05s 1.1s]"},
		"the longest backoff":   {backoff.Config{Initial: 100 * ms, Max: 2 * time.Second, Multiplier: 2, Jitter: "FULL"}, "10", 0, "[10s 11s 12s]"},
		"half of the time left": {backoff.Config{Initial: 100 * ms, Max: 10 * time.Second, Multiplier: 2, Jitter: "FULL"}, "1", 2 * time.Second, "[1s 1.25s 1.5s]"},
		"a longer backoff":      {backoff.Config{Initial: 10 * time.Second, Max: 10 * time.Second, Multiplier: 2, Jitter: "EQUAL"}, "1", 0, "[5s 7.5s 10s]"},
	} {
		p := mustPolicy(t, func(r *spec.Retry) { r.Backoff = row.backoff })
		out := failed(codes.Unavailable)
		out.Trailer = metadata.Pairs(decision.RetryAfter, row.seconds)
		var got []time.Duration
		for _, chance := range []float64{0, 0.5, almostOne} {
			d := decided(p, out, func(s *decision.Situation) {
				s.Chance = chance
				if row.left > 0 {
					s.Left = row.left
				}
			})
			got = append(got, d.Delay.Round(ms))
		}
		if fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v; want %s", name, got, row.want)
		}
	}
}

func TestDecideLongestPushback(t *testing.T) {
	t.Parallel()
	patient := compiled.Of(mustPolicy(t, nil)).Policy
	patient.MaxPushback = math.MaxInt64
	p := policyOf(t, patient)
	out := decision.Outcome{Status: withDetails(t, &durationpb.Duration{Seconds: 315_576_000_000})}
	if got := delays(t, p, almostOne, out); got[0] != math.MaxInt64 {
		t.Errorf("wait %v; want the longest there is", got[0])
	}
}

func TestDecideDecorrelatedJitter(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *spec.Retry) { r.Backoff.Jitter = "DECORRELATED" })
	down := failed(codes.Unavailable)
	// 100 + ½(300−100), 100 + ½(600−100), 100 + ½(1000−100)
	if got := fmt.Sprint(delays(t, p, 0.5, down, down, down)); got != "[200ms 350ms 550ms]" {
		t.Errorf("waits %v", got)
	}
}

func TestDecidePerCodeBackoff(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *spec.Retry) {
		slow := backoff.Config{Initial: time.Second, Max: 30 * time.Second, Multiplier: 3, Jitter: "NONE"}
		r.PerCode = []spec.Code{{Codes: []codes.Code{codes.ResourceExhausted}, Backoff: &slow}}
	})
	got := delays(t, p, 0, failed(codes.ResourceExhausted), failed(codes.ResourceExhausted), failed(codes.Unavailable))
	if fmt.Sprint(got) != "[1s 3s 400ms]" {
		t.Errorf("waits %v; want [1s 3s 400ms]", got)
	}
}

func TestDecideWithoutRetries(t *testing.T) {
	t.Parallel()
	p := policyOf(t, spec.Policy{})
	if d := decided(p, failed(codes.Unavailable)); d.Retry || d.Reason != policy.ReasonNonRetryable {
		t.Errorf("Decide = %+v; want non_retryable", d)
	}
}

func TestDecideAllocations(t *testing.T) {
	s := first(mustPolicy(t, nil), failed(codes.Unavailable))
	if n := testing.AllocsPerRun(100, func() { decision.Decide(&s) }); n > 0 {
		t.Errorf("Decide allocates %v times", n)
	}
}

func ExampleDecide() {
	retry := policytest.UsualRetry()
	p, err := compiled.NewPolicy(spec.Policy{Retry: &retry})
	if err != nil {
		fmt.Println(err)
		return
	}
	out := decision.Outcome{Status: status.New(codes.Unavailable, "connection refused")}
	s := decision.Situation{
		Policy: p, Class: decision.Classify(p, &out, time.Now()), MaxAttempts: p.MaxAttempts(), Safe: true,
		Left: decision.NoDeadline, Chance: 0.5,
	}
	for d := (decision.Decision{Retry: true}); d.Retry; {
		s.Attempts++
		d = decision.Decide(&s)
		fmt.Println("after attempt", s.Attempts, d.Reason, d.Delay)
		s.Backoff = d.Backoff
	}
	// Output:
	// after attempt 1 retry 25ms
	// after attempt 2 retry 50ms
	// after attempt 3 attempts_exhausted 0s
}
