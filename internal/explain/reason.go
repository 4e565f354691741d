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
	Question  string        `json:"question,omitempty"` // of the checks; the reason is its "no"
	Means     string        `json:"means"`
	LookAt    string        `json:"lookAt,omitempty"`
	Change    string        `json:"change,omitempty"`
	CallAgain string        `json:"callAgain,omitempty"` // may a loop around the call make it again?
	DoNot     string        `json:"doNot,omitempty"`
}

// stopIt is what to do first if one backend is slow.
const stopIt = "If one backend is slow, [find it and stop it](runbook.md#a-backend-hangs). "

// Meanings returns the meanings of all reasons, in order. docs/runbook.md, the debug page and stagger explain --reason show
// them; `make generate` writes the pages.
func Meanings() []Meaning {
	return withQuestions([]Meaning{
		{
			Reason: policy.ReasonNonRetryable,
			Means: "The policy doesn't list the code, or another attempt would fail in the same way, as with a message that is " +
				"too large. Or an inner interceptor returned an error without a status.",
			LookAt: "The error's code, and `retryableStatusCodes` of the method's entry: `stagger explain` shows them. If the " +
				"code is listed, the interceptors after the Retrier.",
			Change: "List the code if another attempt may succeed. Use `interceptor.WithClassifier` if the server means something " +
				"else by it. Put an interceptor that refuses calls before the Retrier.",
			CallAgain: "No.",
			DoNot:     "List `INVALID_ARGUMENT`, `NOT_FOUND` or the like: the same call fails again.",
		},
		{
			Reason: policy.ReasonCommitted,
			Means: "The application has seen part of the attempt (a message, headers, `Context` or `Trailer`), or the stream has " +
				"sent more than the replay buffer holds.",
			LookAt: "`Error.Commit`, which names the cause.",
			Change: "Use `interceptor.Resume` for server streams. Raise `grpc.MaxRetryRPCBufferSize` and `WithMaxReplayBytes` for " +
				"the buffer. Ask for `Header` or `Context` after the first message.",
			CallAgain: "No: the application has seen part of the response.",
			DoNot:     "Repeat the call by hand: the application would see the first messages twice.",
		},
		{
			Reason: policy.ReasonAttemptsExhausted,
			Means:  "All `maxAttempts` attempts have failed.",
			LookAt: "The server: its fault lasts longer than the retries. The log lines of the retries have the codes of the " +
				"attempts.",
			Change: "Set longer backoffs if the fault outlasts them. Use [retries elsewhere](retry-elsewhere.md) if one backend " +
				"is broken.",
			CallAgain: "Yes, if a second effect is harmless.",
			DoNot:     "Raise `maxAttempts`: it multiplies the load of a failing server.",
		},
		{
			Reason: policy.ReasonPushbackStop,
			Means:  "The server forbade another attempt (pushback), or asked for a longer delay than `maxPushback`.",
			LookAt: "The service itself, or a service that it calls and that has given up ([chains](chains.md)). Can the service " +
				"do without that one?",
			Change: "Fix the failure there. If the service can do without it, make those calls with " +
				"[`interceptor.Optional()`](chains.md#calls-that-a-handler-can-do-without). Raise `maxPushback` if callers " +
				"can wait.",
			CallAgain: "Not if the server forbids it. Otherwise after its delay.",
			DoNot:     "Filter the trailer out: the attempts of several layers would multiply.",
		},
		{
			Reason: policy.ReasonNotIdempotent,
			Means: "The attempt may have taken effect, and the method isn't declared idempotent. For the same reason, no attempt " +
				"follows a slow one.",
			LookAt: "What happens if the server runs the method twice? If a backend hangs, the log and the debug page name it.",
			Change: stopIt + "[Eject](set-up.md#eject-what-hangs) backends that hang. If a second run has an effect, use an " +
				"[idempotency key](idempotency.md#idempotency-keys), once the server deduplicates. Only if a second run is " +
				"harmless, set `idempotency_level` in the `.proto`, or name service and method in an entry.",
			CallAgain: "No: the call may have taken effect.",
			DoNot: "Name the method, write `idempotency: ASSUME` or send a key that the server ignores, only to get rid of this " +
				"reason: calls would take effect twice.",
		},
		{
			Reason: policy.ReasonFollowed,
			Means: "The attempt was [slow](hedging.md#slow-attempts), another one was sent in parallel, and that one still runs. " +
				"The call continues.",
			DoNot: "Count it as a failed call.",
		},
		{
			Reason: policy.ReasonChainStop,
			Means: "This call is part of a retry by [an upstream caller](chains.md), and the policy's `chain` leaves retries to " +
				"that caller.",
			LookAt:    "The upstream caller: its header `grpc-previous-rpc-attempts` says that it retries.",
			Change:    "Set `chain: ALLOW` if only this layer knows how to retry.",
			CallAgain: "No: the retry belongs to the upstream caller.",
			DoNot:     "Let all layers retry: three attempts in each of three layers are 27 requests.",
		},
		{
			Reason:    policy.ReasonBreakerOpen,
			Means:     "The program's [circuit breaker](policy-file.md#circuit-breakers) is open.",
			LookAt:    "The breaker's own metrics, and the failures before it opened.",
			Change:    "Its thresholds, if it opens too early.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Remove it during an outage: all calls that it holds back would come at once.",
		},
		{
			Reason: policy.ReasonOverloaded,
			Means: "[Admission](overload.md#shed-load-in-the-client) expects no response before the deadline, because the last " +
				"responses took most of the call's time. A call with 0 attempts was not sent, and failed with " +
				"`RESOURCE_EXHAUSTED`.",
			LookAt:    "The service's latency, and its callers' deadlines. The debug page counts the refused calls by method.",
			Change:    "Add capacity, or give the service less work. Set longer deadlines only if callers can wait.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Retry these errors immediately: the refusals let the service serve other calls.",
		},
		{
			Reason: policy.ReasonSlowEverywhere,
			Means: "All of the method's [last ten responses](overload.md) were very slow: longer than the attempt timeout, and " +
				"longer than a quarter of the call's time. So the servers have a queue, and another attempt would make it " +
				"longer. `answers` in the log has the time.",
			LookAt: "The service's latency and its queue. The service is overloaded, or one that it calls is.",
			Change: "Add capacity, or [shed load](overload.md#shed-load-in-the-client). If the method usually takes that long, " +
				"set a `perAttemptTimeout` above it, or give its calls longer deadlines.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Replace timeouts by hedges: they wait in the same queue.",
		},
		{
			Reason: policy.ReasonNotProvenFast,
			Means: "The attempt is slow, and continues alone: more than a fifth of the method's [last ten " +
				"responses](overload.md) were slow, or there have been fewer than five. `answers` in the log says which.",
			LookAt: "The service's latency: it is overloaded, or the timeout is too short. After a start, as in a test, the first " +
				"five calls.",
			Change: stopIt + "Set a `perAttemptTimeout` or `hedgingDelay` that nine of ten responses meet. For a program that makes only a " +
				"few calls, set `onAttemptTimeout: RETRY`. The guide to [overload](overload.md#when-a-retry-is-refused) has all remedies.",
			CallAgain: "Yes, with a new deadline, if a second effect is harmless.",
			DoNot:     "Shorten the delay: in an overload, hedges wait in the same queue as all other requests.",
		},
		{
			Reason: policy.ReasonDeadlineTooClose,
			Means: "The wait and an attempt of a millisecond would not end before the deadline, so the caller gets the error " +
				"immediately.",
			LookAt:    "Deadlines and backoffs: `stagger explain --deadline` shows them.",
			Change:    "Set a longer deadline or `timeout`, or shorter backoffs.",
			CallAgain: "Yes, with a new deadline.",
			DoNot:     "Remove deadlines: calls without one wait for as long as a server hangs.",
		},
		{
			Reason:    policy.ReasonTooManyWaiting,
			Means:     "`maxWaiting` (10,000) calls already wait for their next attempt, or half as many of one target.",
			LookAt:    "The target: it is probably down.",
			Change:    "Set shorter backoffs. Raise `maxWaiting` if there is memory for more calls.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Remove the limit: waiting calls hold their requests and their callers.",
		},
		{
			Reason: policy.ReasonBudgetExhausted,
			Means: "The [retry budget](overload.md) is too low: too many of the last retries did not succeed, and neither " +
				"successful calls nor time have filled it since.",
			LookAt: "The server, which this limit protects. `stagger.budget.balance` ÷ `capacity` shows for how long.",
			Change: "In an outage, nothing: fix the server. Otherwise, [find the cause](overload.md#when-a-retry-is-refused): half " +
				"of the backends hang, one method always fails, or many processes make few calls.",
			CallAgain: "Yes, after a pause: `Error.RetryAfter` says how long.",
			DoNot:     "Write `budget: NONE`, or raise the numbers during an outage: retries would make it last longer.",
		},
		{
			Reason: policy.ReasonRetry,
			Means:  "All checks passed, and another attempt follows. With `mode=\"OBSERVE\"`, it would have followed.",
			LookAt: "Its rate. A few percent of the calls mean short faults; more mean a lasting one.",
			Change: "Fix the failure.",
			DoNot:  "Alert on single retries.",
		},
		{
			Reason: policy.ReasonHedge,
			Means:  "All checks passed, and another attempt is sent in parallel with a slow one.",
			LookAt: "Its rate. If it is high, the method is slower than `hedgingDelay` or `perAttemptTimeout` expect.",
			Change: stopIt + "Otherwise raise the delay; `hedgingQuantile` follows the latency.",
			DoNot:  "Shorten the delay while all servers are slow.",
		},
		{
			Reason: policy.ReasonSucceeded,
			Means:  "The last attempt ended with OK.",
		},
		{
			Reason: policy.ReasonDeadlineExceeded,
			Means: "The caller's deadline, or the policy's `timeout`, has passed. In a chain, the user's deadline often arrives " +
				"as a cancellation, with the code `CANCELLED`. In the last 5 ms, or the last tenth of the call's time if that " +
				"is less, it counts as the deadline.",
			LookAt:    "The error, which names the last error of a server. Without one, no server responded.",
			Change:    stopIt + "Set `perAttemptTimeout`, which asks another server while there is time. Raise `timeout` if it is too short.",
			CallAgain: "Yes, with a new deadline, if a second effect is harmless.",
			DoNot:     "Give a service a longer deadline than its callers have: it would work for callers that have left.",
		},
		{
			Reason:    policy.ReasonCancelled,
			Means:     "The caller cancelled the call long before its deadline. With `slow=\"true\"`, an attempt was slow.",
			LookAt:    "Has a user left, or has a service above given up?",
			Change:    strings.TrimSpace(stopIt),
			CallAgain: "No.",
			DoNot:     "Continue the work in a new context, unless it must be done.",
		},
		{
			Reason:    policy.ReasonClosed,
			Means:     "The ClientConn or the Retrier (`Retrier.Close`, for SIGTERM) was closed while the call ran or waited.",
			LookAt:    "The order in which the program stops.",
			Change:    "Close connections after their last calls, and call `Retrier.Close` before `GracefulStop`.",
			CallAgain: "No.",
			DoNot:     "Close a connection to get rid of a bad backend: gRPC reconnects by itself.",
		},
		{
			Reason: policy.ReasonNotConnected,
			Means: "No connection was made within `maxConnectionWait` (3 s), or the outage is older than 5 s, and calls don't " +
				"wait any longer.",
			LookAt:    "Address, name resolution, certificates and network. The error is that of the last connection.",
			Change:    "Raise `maxConnectionWait` if restarts take longer than 3 s.",
			CallAgain: "Yes, after a pause.",
			DoNot:     "Set `waitForReady` without a deadline: calls then wait for ever.",
		},
		{
			Reason: policy.ReasonModeOff,
			Means: "The [mode](modes.md) of the Retrier, the policy file or the entry prevents another attempt. With " +
				"`mode=\"OBSERVE\"`, another attempt would have followed.",
			LookAt:    "`stagger.policy.info`, `Retrier.State`, and the log line `mode set`: when and why were retries turned off?",
			Change:    "Set `mode` in the policy file, or undo what `Retrier.SetMode` has set. The strictest mode applies.",
			CallAgain: "No: retries are turned off.",
			DoNot:     "Turn retries on everywhere at once after a long outage: begin with a few instances.",
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
			return Meaning{m.Reason, m.Question, plain(m.Means), plain(m.LookAt), plain(m.Change), plain(m.CallAgain), plain(m.DoNot)}, nil
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
