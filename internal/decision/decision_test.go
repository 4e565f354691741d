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

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/usual"
	"github.com/stagger-go/stagger/policy"
)

// purse is a call's gates in tests. It counts the checks; the breaker is open and the wait limit full only if set.
type purse struct {
	empty, open, full  bool
	off                policy.Reason
	long               bool // all of the last responses were long
	unproven           bool // too few responses are known, or one was long
	queued             bool // admission reports a queue
	failed, asked, out int
	entered, left      int
}

func (p *purse) Off() policy.Reason { return p.off }

func (p *purse) Open() bool { return p.open }

func (p *purse) SlowEverywhere() bool { return p.long }

func (p *purse) ProvenFast() bool { return !p.unproven }

func (p *purse) Overloaded() bool { return p.queued }

func (p *purse) ReleaseSlot() { p.left++ }

func (p *purse) TakeSlot() bool {
	if !p.full {
		p.entered++
	}
	return !p.full
}

func (p *purse) Fail() { p.failed++ }

func (p *purse) AllowExtra(decision.Outcome) bool {
	p.asked++
	if !p.empty {
		p.out++
	}
	return !p.empty
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func mustPolicy(t testing.TB, change func(*policy.RetrySpec)) *decision.Policy {
	t.Helper()
	retry := policy.RetrySpec{
		MaxAttempts:          4,
		Backoff:              policy.Backoff{Initial: 100 * ms, Max: time.Second, Multiplier: 2, Jitter: "NONE"},
		RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.ResourceExhausted},
	}
	if change != nil {
		change(&retry)
	}
	return compiled(t, policy.Spec{Retry: &retry})
}

func failed(code codes.Code) decision.Outcome {
	return decision.Outcome{Status: status.New(code, "")}
}

func pushed(code codes.Code, values ...string) decision.Outcome {
	out := failed(code)
	out.Trailer = metadata.MD{decision.PushbackTrailer: values}
	return out
}

// situation is the input of a decision.
type situation struct {
	call  decision.Call
	out   decision.Outcome
	purse purse
	spec  func(*policy.RetrySpec)
}

func inRetry(rule string) func(*situation) {
	return func(s *situation) {
		s.call.InRetry = true
		s.spec = func(r *policy.RetrySpec) { r.Chain = rule }
	}
}

// slow makes the outcome that of a slow attempt.
func slow(s *situation) {
	s.out = failed(codes.DeadlineExceeded)
	s.out.TimedOut = true
}

// The pipeline, step by step. Every row starts from a call that would be retried and changes one thing. Rows that change two
// things show which check comes first.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*situation)
		reason policy.Reason
		delay  time.Duration
		failed int // failures that the budget was told
		asked  int
	}{
		{"a retryable failure is retried", func(*situation) {}, policy.ReasonRetry, 100 * ms, 1, 1},

		{"1 a code that is not listed", func(s *situation) { s.out = failed(codes.NotFound) }, policy.ReasonNonRetryable, 0, 0, 0},
		{"1 a code that no gRPC knows", func(s *situation) { s.out = failed(codes.Code(46)) }, policy.ReasonNonRetryable, 0, 0, 0},
		{"1 an outcome that is final", func(s *situation) { s.out.Final = true }, policy.ReasonNonRetryable, 0, 0, 0},
		{"1 before 2", func(s *situation) { s.out = failed(codes.NotFound); s.call.Committed = decision.CommitMessage }, policy.ReasonNonRetryable, 0, 0, 0},

		{"2 the application has seen the attempt", func(s *situation) { s.call.Committed = decision.CommitMessage }, policy.ReasonCommitted, 0, 1, 0},
		{"2 before 3", func(s *situation) { s.call.Committed = decision.CommitMessage; s.call.Attempts = 4 }, policy.ReasonCommitted, 0, 1, 0},

		{"3 one attempt left", func(s *situation) { s.call.Attempts = 3 }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"3 no attempt left", func(s *situation) { s.call.Attempts = 4 }, policy.ReasonAttemptsExhausted, 0, 1, 0},
		{"3 the Retrier's cap", func(s *situation) { s.call.Attempts, s.call.MaxAttempts = 2, 2 }, policy.ReasonAttemptsExhausted, 0, 1, 0},
		{"3 the Retrier's cap is no promise", func(s *situation) { s.call.Attempts, s.call.MaxAttempts = 4, 9 }, policy.ReasonAttemptsExhausted, 0, 1, 0},
		{"3 fewer attempts after some codes", func(s *situation) {
			s.call.Attempts = 2
			s.spec = func(r *policy.RetrySpec) {
				r.PerCode = []policy.CodeSpec{{Codes: []codes.Code{codes.Unavailable}, MaxAttempts: 2}}
			}
		}, policy.ReasonAttemptsExhausted, 0, 1, 0},
		{"3 before 4", func(s *situation) { s.call.Attempts = 4; s.call.Safe = false }, policy.ReasonAttemptsExhausted, 0, 1, 0},

		{"4 not declared safe", func(s *situation) { s.call.Safe = false }, policy.ReasonNotIdempotent, 0, 1, 0},
		{"4 not declared safe, but never left the client", func(s *situation) { s.call.Safe = false; s.out.Unsent = true }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"a stop comes before the question of safety", func(s *situation) { s.call.Safe = false; s.out = pushed(codes.Unavailable, "-1") }, policy.ReasonPushbackStop, 0, 1, 0},

		{"5 the server forbids it", func(s *situation) { s.out = pushed(codes.Unavailable, "-1") }, policy.ReasonPushbackStop, 0, 1, 0},
		{"5 the server cannot be understood", func(s *situation) { s.out = pushed(codes.Unavailable, "+5") }, policy.ReasonPushbackStop, 0, 1, 0},
		{"5 the server says two things", func(s *situation) { s.out = pushed(codes.Unavailable, "7", "8") }, policy.ReasonPushbackStop, 0, 1, 0},
		{"5 the server names a delay", func(s *situation) { s.out = pushed(codes.Unavailable, "5000") }, policy.ReasonRetry, 5 * time.Second, 1, 1},
		{"5 the longest delay that is obeyed", func(s *situation) { s.out = pushed(codes.Unavailable, "300000") }, policy.ReasonRetry, 300 * time.Second, 1, 1},
		{"5 a longer one ends the call", func(s *situation) { s.out = pushed(codes.Unavailable, "300001") }, policy.ReasonPushbackStop, 0, 1, 0},
		{"5 a delay does not make a code retryable", func(s *situation) { s.out = pushed(codes.NotFound, "5") }, policy.ReasonNonRetryable, 0, 0, 0},
		{"5 a stop counts as a failure after any code", func(s *situation) { s.out = pushed(codes.NotFound, "-1") }, policy.ReasonNonRetryable, 0, 1, 0},
		{"5 no server has seen the attempt, so its failure does not count", func(s *situation) { s.out.Foreign = true }, policy.ReasonRetry, 100 * ms, 0, 1},
		{"5 the server has forbidden it before", func(s *situation) { s.call.Stopped = true }, policy.ReasonPushbackStop, 0, 1, 0},
		{"5 before 9", func(s *situation) { s.out = pushed(codes.Unavailable, "-1"); s.call.Deadline = noon }, policy.ReasonPushbackStop, 0, 1, 0},

		{"5 another attempt has followed", func(s *situation) { s.call.Followed = true }, policy.ReasonFollowed, 0, 1, 0},
		{"5 before that", func(s *situation) { s.out = pushed(codes.Unavailable, "-1"); s.call.Followed = true }, policy.ReasonPushbackStop, 0, 1, 0},
		{"5 before 6", func(s *situation) { s.out = pushed(codes.Unavailable, "-1"); inRetry("SUPPRESS")(s) }, policy.ReasonPushbackStop, 0, 1, 0},

		{"6 inside of a retry, ALLOW", func(s *situation) { s.call.InRetry = true; s.call.Attempts = 3 }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"6 inside of a retry, SUPPRESS", inRetry("SUPPRESS"), policy.ReasonChainStop, 0, 1, 0},
		{"6 inside of a first attempt, SUPPRESS", func(s *situation) { inRetry("SUPPRESS")(s); s.call.InRetry = false }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"6 before 7", func(s *situation) { inRetry("SUPPRESS")(s); s.purse.open = true }, policy.ReasonChainStop, 0, 1, 0},

		{"7 a mode that forbids it", func(s *situation) { s.purse.off, s.purse.open = policy.ReasonModeOff, true }, policy.ReasonModeOff, 0, 1, 0},
		{"6 before a mode that forbids it", func(s *situation) { inRetry("SUPPRESS")(s); s.purse.off = policy.ReasonClosed }, policy.ReasonChainStop, 0, 1, 0},
		{"7 the circuit is open", func(s *situation) { s.purse.open = true }, policy.ReasonBreakerOpen, 0, 1, 0},
		{"7 before 9", func(s *situation) { s.purse.open = true; s.call.Deadline = noon }, policy.ReasonBreakerOpen, 0, 1, 0},

		{"8 a failure while all responses are long", func(s *situation) { s.purse.long = true }, policy.ReasonSlowEverywhere, 0, 1, 0},
		{"8 a slow attempt while all responses are long", func(s *situation) { slow(s); s.purse.long = true }, policy.ReasonSlowEverywhere, 0, 0, 0},
		{"8 an attempt that was not sent while all responses are long", func(s *situation) { s.purse.long = true; s.out.Unsent = true }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"8 a slow attempt while the responses are fast", slow, policy.ReasonRetry, 100 * ms, 0, 1},
		{"8 a slow attempt, and it is not proven", func(s *situation) { slow(s); s.purse.unproven = true }, policy.ReasonNotProvenFast, 0, 0, 0},
		{"8 a failure, and it is not proven", func(s *situation) { s.purse.unproven = true }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"8 a server's own DEADLINE_EXCEEDED, and it is not proven", func(s *situation) {
			s.out, s.purse.unproven = failed(codes.DeadlineExceeded), true
			s.spec = func(r *policy.RetrySpec) { r.RetryableStatusCodes = []codes.Code{codes.DeadlineExceeded} }
		}, policy.ReasonRetry, 100 * ms, 1, 1},
		{"7 before 8", func(s *situation) { slow(s); s.purse.long, s.purse.open = true, true }, policy.ReasonBreakerOpen, 0, 0, 0},
		{"a queue before too little proof", func(s *situation) { slow(s); s.purse.long, s.purse.unproven = true, true }, policy.ReasonSlowEverywhere, 0, 0, 0},
		{"too little proof before admission", func(s *situation) { slow(s); s.purse.unproven, s.purse.queued = true, true }, policy.ReasonNotProvenFast, 0, 0, 0},
		{"8 before 9", func(s *situation) { slow(s); s.purse.unproven, s.call.Deadline = true, noon }, policy.ReasonNotProvenFast, 0, 0, 0},

		{"9 delay and attempt just fit", func(s *situation) { s.call.Deadline = noon.Add(101 * ms) }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"9 no delay, and the attempt just fits", func(s *situation) { s.out = pushed(codes.Unavailable, "0"); s.call.Deadline = noon.Add(ms) }, policy.ReasonRetry, 0, 1, 1},
		{"9 the attempt would have too little time", func(s *situation) { s.call.Deadline = noon.Add(101*ms - 1) }, policy.ReasonDeadlineTooClose, 0, 1, 0},
		{"9 the deadline has passed", func(s *situation) { s.call.Deadline = noon.Add(-time.Hour) }, policy.ReasonDeadlineTooClose, 0, 1, 0},
		{"9 pushback does not fit", func(s *situation) { s.out = pushed(codes.Unavailable, "5000"); s.call.Deadline = noon.Add(time.Second) }, policy.ReasonDeadlineTooClose, 0, 1, 0},
		{"8 a queue that admission sees", func(s *situation) { s.purse.queued = true }, policy.ReasonOverloaded, 0, 1, 0},
		{"7 before 8", func(s *situation) { s.purse.queued, s.purse.open = true, true }, policy.ReasonBreakerOpen, 0, 1, 0},
		{"8 before 9", func(s *situation) { s.purse.queued = true; s.call.Deadline = noon }, policy.ReasonOverloaded, 0, 1, 0},
		{"9 before 11", func(s *situation) { s.call.Deadline = noon; s.purse.empty = true }, policy.ReasonDeadlineTooClose, 0, 1, 0},

		{"9 before 10", func(s *situation) { s.call.Deadline = noon; s.purse.full = true }, policy.ReasonDeadlineTooClose, 0, 1, 0},

		{"10 no place to wait", func(s *situation) { s.purse.full = true }, policy.ReasonTooManyWaiting, 0, 1, 0},
		{"10 who need not wait needs no place", func(s *situation) {
			s.purse.full = true
			s.out = pushed(codes.Unavailable, "0")
		}, policy.ReasonRetry, 0, 1, 1},
		{"10 before 11", func(s *situation) { s.purse.full, s.purse.empty = true, true }, policy.ReasonTooManyWaiting, 0, 1, 0},

		{"11 the budget refuses", func(s *situation) { s.purse.empty = true }, policy.ReasonBudgetExhausted, 0, 1, 1},

		{"a classifier asks for another attempt after any code", func(s *situation) { s.out = failed(codes.NotFound); s.out.Again = true }, policy.ReasonRetry, 100 * ms, 1, 1},
		{"an answer that means not yet is no failure", func(s *situation) { s.out = failed(codes.OK); s.out.Again = true }, policy.ReasonRetry, 100 * ms, 0, 1},

		{"an attempt timeout is retryable without being listed", func(s *situation) {
			s.out = failed(codes.DeadlineExceeded)
			s.out.TimedOut = true
		}, policy.ReasonRetry, 100 * ms, 0, 1},
		{"an attempt timeout of an unsafe call", func(s *situation) {
			s.out = failed(codes.DeadlineExceeded)
			s.out.TimedOut, s.call.Safe = true, false
		}, policy.ReasonNotIdempotent, 0, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := situation{call: decision.Call{Attempts: 1, Safe: true}, out: failed(codes.Unavailable)}
			row.change(&s)
			spec := *mustPolicy(t, s.spec).Spec()
			p := compiled(t, spec)
			d := p.Decide(&s.call, p.Classify(&s.out, noon), &s.purse, noon, 0)
			if d.Reason != row.reason || d.Delay != row.delay || d.Retry != (row.reason == policy.ReasonRetry) {
				t.Errorf("Decide = %+v; want reason %s, delay %v", d, row.reason, row.delay)
			}
			if s.purse.failed != row.failed || s.purse.asked != row.asked {
				t.Errorf("the budget was told of %d failures and asked %d times; want %d and %d",
					s.purse.failed, s.purse.asked, row.failed, row.asked)
			}
		})
	}
}

// delays runs a call to its end and returns the waits between its attempts.
func delays(t *testing.T, p *decision.Policy, r float64, outs ...decision.Outcome) []time.Duration {
	t.Helper()
	call := decision.Call{Attempts: 1, Safe: true}
	var list []time.Duration
	for _, out := range outs {
		d := p.Decide(&call, p.Classify(&out, noon), &purse{}, noon, r)
		if !d.Retry {
			t.Fatalf("attempt %d: %s; want a retry", call.Attempts, d.Reason)
		}
		call.Sent(d)
		list = append(list, d.Delay)
	}
	return list
}

func TestDecidePushbackRestartsBackoff(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) { r.MaxAttempts = 10 })
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

func TestDecideLongestPushback(t *testing.T) {
	t.Parallel()
	spec := *mustPolicy(t, nil).Spec()
	spec.MaxPushback = math.MaxInt64
	p := compiled(t, spec)
	out := decision.Outcome{Status: withDetails(t, &durationpb.Duration{Seconds: 315_576_000_000})}
	if got := delays(t, p, almostOne, out); got[0] != math.MaxInt64 {
		t.Errorf("wait %v; want the longest there is", got[0])
	}
}

func TestDecideDecorrelatedJitter(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) { r.Backoff.Jitter = "DECORRELATED" })
	down := failed(codes.Unavailable)
	// 100 + ½(300−100), 100 + ½(600−100), 100 + ½(1000−100)
	if got := fmt.Sprint(delays(t, p, 0.5, down, down, down)); got != "[200ms 350ms 550ms]" {
		t.Errorf("waits %v", got)
	}
}

func TestDecidePerCodeBackoff(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) {
		slow := policy.Backoff{Initial: time.Second, Max: 30 * time.Second, Multiplier: 3, Jitter: "NONE"}
		r.PerCode = []policy.CodeSpec{{Codes: []codes.Code{codes.ResourceExhausted}, Backoff: &slow}}
	})
	got := delays(t, p, 0, failed(codes.ResourceExhausted), failed(codes.ResourceExhausted), failed(codes.Unavailable))
	if fmt.Sprint(got) != "[1s 3s 400ms]" {
		t.Errorf("waits %v; want [1s 3s 400ms]", got)
	}
}

func TestDecideWithoutRetries(t *testing.T) {
	t.Parallel()
	p := compiled(t, policy.Spec{})
	call, out := decision.Call{Attempts: 1, Safe: true}, failed(codes.Unavailable)
	if d := p.Decide(&call, p.Classify(&out, noon), &purse{}, noon, 0); d.Retry || d.Reason != policy.ReasonNonRetryable {
		t.Errorf("Decide = %+v; want non_retryable", d)
	}
}

func TestDecideAllocations(t *testing.T) {
	p := mustPolicy(t, nil)
	call, out, b := decision.Call{Attempts: 1, Safe: true}, failed(codes.Unavailable), &purse{}
	if n := testing.AllocsPerRun(100, func() { p.Decide(&call, p.Classify(&out, noon), b, noon, 0.5) }); n > 1 {
		t.Errorf("Decide allocates %v times; want at most the copy of the status", n)
	}
}

func ExamplePolicy_Decide() {
	retry := usual.Retry()
	p := decision.New(policy.Spec{Retry: &retry})
	call := decision.Call{Attempts: 1, Safe: true}
	out := decision.Outcome{Status: status.New(codes.Unavailable, "connection refused")}
	for {
		d := p.Decide(&call, p.Classify(&out, time.Now()), &purse{}, time.Now(), 0.5)
		fmt.Println("after attempt", call.Attempts, d.Reason, d.Delay)
		if !d.Retry {
			return
		}
		call.Sent(d)
	}
	// Output:
	// after attempt 1 retry 25ms
	// after attempt 2 retry 50ms
	// after attempt 3 attempts_exhausted 0s
}
