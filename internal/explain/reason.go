// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// Meaning explains a reason, and what to do about it. Texts of [Meanings] are Markdown with links from docs/, those of
// [MeaningOf] are plain. Parts that do not apply are empty.
type Meaning struct {
	Reason    policy.Reason `json:"reason"`
	Short     string        `json:"-"`                  // for a line of a list, such as "the circuit breaker is open"
	Question  string        `json:"question,omitempty"` // of the checks; the reason is its "no"
	Means     string        `json:"means"`
	LookAt    string        `json:"lookAt,omitempty"`
	Change    string        `json:"change,omitempty"`
	CallAgain string        `json:"callAgain,omitempty"` // may a loop around the call make it again?
	DoNot     string        `json:"doNot,omitempty"`
}

// stopIt is what to do first if one backend fails, hangs or is slow.
const stopIt = "[Stop a backend](runbook.md#a-backend-fails-hangs-or-is-slow) that fails or is slow. "

// Meanings returns the meanings of all reasons, in order. docs/runbook.md, the debug page and stagger explain --reason show
// them; `make generate` writes the pages.
func Meanings() []Meaning {
	return withQuestions([]Meaning{
		{
			Reason: policy.ReasonNonRetryable,
			Short:  "the policy does not list the code",
			Means: "The policy doesn't list the code. Or another attempt would fail in the same way, as with a message that is too large. " +
				"Or an inner interceptor returned an error without a status.",
			LookAt: "The error's code, and the policy's `retryableStatusCodes`. If the code is listed, the interceptors after the Retrier.",
			Change: "List the code if another attempt may succeed, or decide by the error with `interceptor.WithClassifier`. Put an " +
				"interceptor that refuses calls before the Retrier.",
			CallAgain: "No.",
			DoNot:     "List `INVALID_ARGUMENT`, `NOT_FOUND` or the like: the same call fails again.",
		},
		{
			Reason: policy.ReasonCommitted,
			Short:  "the application has seen a part of the attempt",
			Means: "The application has seen part of the attempt (a message, headers, `Context` or `Trailer`), or the stream has " +
				"sent more than the replay buffer holds.",
			LookAt: "`Error.Commit`, which names the cause.",
			Change: "Use `interceptor.Resume` for server streams. Raise `grpc.MaxRetryRPCBufferSize` and `WithMaxReplayBytes` for " +
				"the buffer. Ask for `Header` or `Context` after the first message.",
			CallAgain: "No: the application would see the first messages twice.",
		},
		{
			Reason:    policy.ReasonAttemptsExhausted,
			Short:     "the policy allows no further attempts",
			Means:     "All `maxAttempts` attempts have failed.",
			Change:    stopIt + "[Retry on another one](one-backend.md). Set longer backoffs if the fault outlasts them.",
			CallAgain: "Yes, if a second effect is harmless.",
			DoNot:     "Raise `maxAttempts`: it multiplies the load of a failing server.",
		},
		{
			Reason: policy.ReasonPushbackStop,
			Short:  "the called service has already retried",
			Means:  "The server forbade another attempt (pushback), or asked for a longer delay than `maxPushback`.",
			LookAt: "The service, or one that it calls ([chains](chains.md)). Can the service do without that one?",
			Change: "Fix the failure there. If the service can do without it, make those calls with " +
				"[`interceptor.Optional()`](chains.md#calls-that-a-handler-can-do-without). Raise `maxPushback` if callers " +
				"can wait.",
			CallAgain: "Not if the server forbids it. Otherwise after its delay.",
			DoNot:     "Filter the trailer out: the attempts of several layers would multiply.",
		},
		{
			Reason: policy.ReasonNotIdempotent,
			Short:  "nothing declares the method idempotent",
			Means: "The attempt may have taken effect, and the method isn't declared idempotent. For the same reason, no attempt " +
				"follows a slow one.",
			LookAt: "The backends: the log and the debug page name one that fails or hangs. What happens if the method runs twice?",
			Change: stopIt + "[Eject](one-backend.md#eject-a-backend-that-hangs) one that hangs. If a second run has an effect, use an " +
				"[idempotency key](idempotency.md#idempotency-keys), once the server deduplicates. If it is harmless, set " +
				"`idempotency_level` in the `.proto`, or name service and method in an entry.",
			CallAgain: "No: the call may have taken effect.",
			DoNot:     "Declare it idempotent, or send a key that the server ignores, only to get rid of this reason.",
		},
		{
			Reason: policy.ReasonFollowed,
			Short:  "a newer attempt of the call still runs",
			Means:  "The attempt was [slow](hedging.md#slow-attempts), and another one runs in parallel. The call continues.",
		},
		{
			Reason:    policy.ReasonChainStop,
			Short:     "the incoming call is a retry itself",
			Means:     "The call is part of a retry by [an upstream caller](chains.md), and the policy has `chain: SUPPRESS`.",
			Change:    "Set `chain: ALLOW` if only this layer knows how to retry.",
			CallAgain: "No: the retry belongs to the upstream caller.",
		},
		{
			Reason:    policy.ReasonBreakerOpen,
			Short:     "the circuit breaker is open",
			Means:     "The program's [circuit breaker](circuit-breaker.md) is open.",
			Change:    "Its thresholds, if it opens too early.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Remove it during an outage: all calls that it holds back would come at once.",
		},
		{
			Reason: policy.ReasonOverloaded,
			Short:  "the service would answer too late",
			Means: "[Admission](overload.md#shed-load-in-the-client) expects no response before the deadline. A call with 0 attempts " +
				"was not sent, and failed with `RESOURCE_EXHAUSTED`.",
			Change:    "Add capacity, or give the service less work. Set longer deadlines only if callers can wait.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Retry immediately: the refusals let the service serve other calls.",
		},
		{
			Reason: policy.ReasonSlowEverywhere,
			Short:  "the last calls were all slow: there is a queue",
			Means: "All of the method's [last ten responses](overload.md) were very slow: longer than the attempt timeout, and " +
				"longer than a quarter of the call's time. So requests wait in a queue.",
			LookAt: "The latency and the queue of the service, and of those that it calls. `answers` in the log says how slow.",
			Change: "Add capacity, or [shed load](overload.md#shed-load-in-the-client). If the method usually takes that long, " +
				"set a longer `perAttemptTimeout`, or longer deadlines.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Replace timeouts with hedges: they wait in the same queue.",
		},
		{
			Reason: policy.ReasonNotProvenFast,
			Short:  "little is known of other calls, or some were slow as well",
			Means: "The attempt is slow, and continues alone: more than a fifth of the method's [last ten " +
				"responses](overload.md) were slow, or there have been fewer than five. `answers` in the log says which.",
			Change: stopIt + "Set a `perAttemptTimeout` or `hedgingDelay` that nine of ten responses meet. " +
				"[All remedies](overload.md#when-a-retry-is-refused).",
			CallAgain: "Yes, with a new deadline, if a second effect is harmless.",
			DoNot:     "Shorten the delay: in an overload, hedges wait in the same queue.",
		},
		{
			Reason:    policy.ReasonDeadlineTooClose,
			Short:     "the next attempt would have come too late",
			Means:     "The wait and an attempt of a millisecond would not end before the deadline, so the call fails immediately.",
			LookAt:    "Deadlines and backoffs: `stagger explain --deadline` shows them.",
			Change:    "Set a longer deadline or `timeout`, or shorter backoffs.",
			CallAgain: "Yes, with a new deadline.",
		},
		{
			Reason:    policy.ReasonTooManyWaiting,
			Short:     "too many calls wait already",
			Means:     "`maxWaiting` (10,000) calls already wait for their next attempt, or half as many of one target.",
			Change:    "Set shorter backoffs. Raise `maxWaiting` if there is memory for more calls.",
			CallAgain: "Yes, after a pause.",
		},
		{
			Reason: policy.ReasonFailingEverywhere,
			Short:  "every request failed, and none was answered in time",
			Means: "Five attempts at the target have failed in a row, and the server answered none while the call waited " +
				"([`maxConnectionWait`, 3 s](servers-down.md)). Or the call didn't wait: its method has failed for more than 5 s, the server " +
				"asked for a longer delay, or the call's options forbid it.",
			Change: "Fix the server. If only one method fails, give it a budget of its own. If restarts take longer than 3 s, raise " +
				"`maxConnectionWait`.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Write `budget: NONE` to avoid it: retries would make the outage last longer.",
		},
		{
			Reason: policy.ReasonBudgetExhausted,
			Short:  "the budget does not pay for another attempt",
			Means: "The [retry budget](overload.md) is used up: too many of the last retries failed, and neither successful calls " +
				"nor time have filled it since.",
			LookAt:    "The server, which the budget protects. `stagger.budget.balance` shows since when.",
			Change:    "In an outage, nothing: fix the server. Otherwise, [find the cause](overload.md#when-a-retry-is-refused).",
			CallAgain: "Yes, after a pause: `Error.RetryAfter` says how long.",
			DoNot:     "Write `budget: NONE`, or raise the numbers during an outage: retries would make it last longer.",
		},
		{
			Reason: policy.ReasonRetry,
			Short:  "all checks passed",
			Means:  "All checks passed, and another attempt follows. With `mode=\"OBSERVE\"`, it would have followed.",
			LookAt: "Its rate. A few percent of the calls mean short faults; more mean a lasting one.",
			Change: "Fix the failure.",
		},
		{
			Reason: policy.ReasonHedge,
			Short:  "all checks passed, and another attempt still runs",
			Means:  "All checks passed, and another attempt runs in parallel with a slow one.",
			Change: stopIt + "Otherwise raise the delay; `hedgingQuantile` follows the latency.",
			DoNot:  "Shorten the delay while all servers are slow.",
		},
		{
			Reason: policy.ReasonSucceeded,
			Short:  "the call has succeeded",
			Means:  "The last attempt ended with OK.",
		},
		{
			Reason: policy.ReasonDeadlineExceeded,
			Short:  "the caller's deadline has passed",
			Means: "The caller's deadline, or the policy's `timeout`, has passed. In a chain, the code is often `CANCELLED`: the caller's " +
				"cancellation arrives just before the deadline.",
			LookAt: "`waitedFor` in the log, or `Error.WaitedFor`: a `response`, a `connection`, a free `stream` (the server's MAX_CONCURRENT_STREAMS), " +
				"the `backoff`, or an `answer` to another call while all fail. Then the attempts, and their errors.",
			Change:    stopIt + "Set [`perAttemptTimeout`](timeouts.md), which asks another server while there is time.",
			CallAgain: "Yes, with a new deadline, if a second effect is harmless.",
			DoNot:     "Give a service a longer deadline than its callers have.",
		},
		{
			Reason:    policy.ReasonCancelled,
			Short:     "the caller has left",
			Means:     "The caller cancelled the call long before its deadline. With `slow=\"true\"`, an attempt was slow.",
			Change:    strings.TrimSpace(stopIt),
			CallAgain: "No.",
		},
		{
			Reason:    policy.ReasonClosed,
			Short:     "the connection was closed",
			Means:     "The ClientConn or the Retrier was closed while the call ran or waited.",
			LookAt:    "The order in which the program stops.",
			Change:    "Close connections after their last calls, and call `Retrier.Close` before `GracefulStop`.",
			CallAgain: "No.",
		},
		{
			Reason: policy.ReasonNotConnected,
			Short:  "the service was not back in time",
			Means:  "No connection was made within `maxConnectionWait` (3 s), or the outage is older than 5 s.",
			LookAt: "Address, name resolution, certificates and network. The error is that of the last connection.",
			Change: "If it happens in rolling updates, [clients must ask DNS more often](kubernetes.md#rolling-updates): set " +
				"`dns.SetMinResolutionInterval(time.Second)` and `minReadySeconds`. Raise `maxConnectionWait` if restarts take longer than 3 s.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Set `waitForReady` without a deadline: calls then wait for ever.",
		},
		{
			Reason: policy.ReasonModeOff,
			Short:  "retries are switched off",
			Means: "The [mode](modes.md) of the Retrier, the policy file or the entry prevents another attempt. With " +
				"`mode=\"OBSERVE\"`, it would have followed.",
			LookAt:    "`stagger.policy.info`, `Retrier.State`, and the log line `mode set`: when and why were retries turned off?",
			Change:    "Set `mode` in the policy file, or undo what `Retrier.SetMode` has set. The strictest mode applies.",
			CallAgain: "No: retries are turned off.",
		},
	})
}

func withQuestions(list []Meaning) []Meaning {
	for i := range list {
		for _, s := range decision.Checks() {
			if s.No == list[i].Reason {
				list[i].Question = s.Question
			}
		}
	}
	return list
}

// MeaningOf returns the meaning of a reason by its name.
func MeaningOf(name string) (Meaning, error) {
	var names []string
	for _, m := range Meanings() {
		if string(m.Reason) == name {
			return Meaning{m.Reason, m.Short, m.Question, plain(m.Means), plain(m.LookAt), plain(m.Change), plain(m.CallAgain), plain(m.DoNot)}, nil
		}
		names = append(names, string(m.Reason))
	}
	if near := document.Nearest(name, names); near != "" {
		return Meaning{}, fmt.Errorf("reason %q: unknown; did you mean %s?", name, near)
	}
	return Meaning{}, fmt.Errorf("reason %q: must be one of %s", name, strings.Join(names, ", "))
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain removes links and code marks from Markdown.
func plain(text string) string {
	return strings.ReplaceAll(link.ReplaceAllString(text, "$1"), "`", "")
}
