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
	Reason   policy.Reason `json:"reason"`
	Question string        `json:"question,omitempty"` // of the checks; the reason is its "no"
	Means    string        `json:"means"`
	LookAt   string        `json:"lookAt,omitempty"`
	Change   string        `json:"change,omitempty"`
	DoNot    string        `json:"doNot,omitempty"`
}

// stopIt is what to do first if one backend is slow.
const stopIt = "[Find it and stop it](runbook.md#a-backend-hangs), if one backend is slow. "

// Meanings returns the meanings of all reasons, in order. docs/runbook.md, the debug page and stagger explain --reason show
// them; `make generate` writes the pages.
func Meanings() []Meaning {
	return withQuestions([]Meaning{
		{
			Reason: policy.ReasonNonRetryable,
			Means: "The policy does not list the code, or the same call would fail again, as with a message that is too large. " +
				"Or an inner interceptor returned an error without a status.",
			LookAt: "The error's code, and `retryableStatusCodes` of the method's entry (`stagger explain`). " +
				"If the code is listed, the interceptors after the Retrier.",
			Change: "List the code if another attempt may help. Use `interceptor.WithClassifier` if the server means " +
				"something else by it. " +
				"Put an interceptor that refuses calls before the Retrier.",
			DoNot: "List `INVALID_ARGUMENT`, `NOT_FOUND` or the like: the same call fails again.",
		},
		{
			Reason: policy.ReasonCommitted,
			Means:  "The application has seen part of the attempt (a message, headers, `Context` or `Trailer`), or what the stream has sent did not fit into the replay buffer.",
			LookAt: "`Error.Commit`, which names the cause.",
			Change: "`interceptor.Resume` for server streams. `grpc.MaxRetryRPCBufferSize` and `WithMaxReplayBytes` for the buffer. Ask for `Header` or `Context` after the first message.",
			DoNot:  "Repeat the call by hand: the application would see the first messages twice.",
		},
		{
			Reason: policy.ReasonAttemptsExhausted,
			Means:  "All of `maxAttempts` attempts have failed.",
			LookAt: "The server: its fault lasts longer than the retries. Their log lines have the codes of all attempts.",
			Change: "Longer backoffs, if the fault outlasts them. [Retries elsewhere](retry-elsewhere.md) if one backend is broken.",
			DoNot:  "Raise `maxAttempts`: it multiplies the load of a failing server.",
		},
		{
			Reason: policy.ReasonPushbackStop,
			Means:  "The server forbade another attempt, or asked for a longer delay than `maxPushback`.",
			LookAt: "The service itself, or one below it that has given up ([chains](chains.md)). Can the service do without that one?",
			Change: "Fix the failure there. If the service does without, let it make those calls with " +
				"[`interceptor.Optional()`](chains.md#calls-that-a-handler-can-do-without). Raise `maxPushback` if callers can wait.",
			DoNot: "Filter the trailer out: without it, the attempts of several layers multiply.",
		},
		{
			Reason: policy.ReasonNotIdempotent,
			Means: "The attempt may have taken effect, and the method is not declared idempotent. So no attempt follows one that is slow, either: " +
				"in a hang, declaring the method helps, or a key, or ejecting the backend.",
			LookAt: "What happens if the server runs the method twice? In a hang, the backend that the log and the debug page name.",
			Change: stopIt + "[Eject](set-up.md#eject-what-hangs) what hangs. If it has an effect, use an [idempotency key](idempotency.md#idempotency-keys), once the server deduplicates. " +
				"Only if running it twice is harmless, set `idempotency_level` in the `.proto`, or name service and method in an entry.",
			DoNot: "Name the method, write `idempotency: ASSUME` or send a key that the server ignores to get rid of the reason: " +
				"calls would take effect twice.",
		},
		{
			Reason: policy.ReasonFollowed,
			Means:  "The attempt was [slow](hedging.md#slow-attempts), another was sent in parallel, and that one still runs. The call goes on.",
			DoNot:  "Count it as a failure of a call.",
		},
		{
			Reason: policy.ReasonChainStop,
			Means:  "This call is part of a retry by [an upstream caller](chains.md), and the policy's `chain` leaves retries to that caller.",
			LookAt: "The upstream caller: its header `grpc-previous-rpc-attempts` says that it retries.",
			Change: "Set `chain: ALLOW`, if only this layer knows how to retry.",
			DoNot:  "Let all layers retry: three attempts in each of three layers are 27 requests.",
		},
		{
			Reason: policy.ReasonBreakerOpen,
			Means:  "The program's [circuit breaker](policy-file.md#circuit-breakers) is open.",
			LookAt: "The breaker's own metrics, and the failures before this one.",
			Change: "Its thresholds, if it opens without need.",
			DoNot:  "Remove it during an outage: all calls that it holds back come together.",
		},
		{
			Reason: policy.ReasonOverloaded,
			Means: "[Admission](admission.md) expects no response before the deadline: the last responses took most of the " +
				"call's time. A call with 0 attempts was not sent, and failed with `RESOURCE_EXHAUSTED`.",
			LookAt: "The service's latency against its callers' deadlines. The debug page counts refused calls by method.",
			Change: "Capacity, or less work. Longer deadlines only if callers can wait.",
			DoNot:  "Retry these errors in the application: the refusals let the service serve other calls.",
		},
		{
			Reason: policy.ReasonSlowEverywhere,
			Means: "All of the method's [last ten answers](load.md) were very slow: longer than the attempt timeout, and than a quarter of the " +
				"call's time. So the servers have a queue, and another attempt would lengthen it. `answers` in the log has the time.",
			LookAt: "The service's latency and its queue. It is overloaded, or a service below it is.",
			Change: "Capacity. If the method usually takes that long, a `perAttemptTimeout` above what it takes, or longer deadlines for its calls.",
			DoNot:  "Replace timeouts by hedges: they wait in the same queue.",
		},
		{
			Reason: policy.ReasonNotProvenFast,
			Means: "The attempt is slow, and no other one follows it: more than a fifth of the method's [last ten answers](load.md) were slow, or " +
				"it has had fewer than five. The attempt goes on. `answers` in the log says which.",
			LookAt: "The service's latency: it is overloaded, or the timeout is too short. After a start, as in a test, the first five calls.",
			Change: stopIt + "A `perAttemptTimeout` or `hedgingDelay` that nine of ten answers meet. For a program that makes only a few calls, " +
				"`onAttemptTimeout: RETRY`.",
			DoNot: "Shorten the delay: in an overload, hedges would wait in the queue of all others.",
		},
		{
			Reason: policy.ReasonDeadlineTooClose,
			Means:  "The wait and an attempt of a millisecond would not end before the deadline, so the caller has the error immediately.",
			LookAt: "Deadlines against backoffs: `stagger explain --deadline` shows them.",
			Change: "A longer deadline or `timeout`, or shorter backoffs.",
			DoNot:  "Remove deadlines: calls without one wait for as long as a server hangs.",
		},
		{
			Reason: policy.ReasonTooManyWaiting,
			Means:  "`maxWaiting` (10,000) calls wait for their next attempt, or half as many of one target.",
			LookAt: "The target: most likely it is down.",
			Change: "`maxWaiting` if there is memory for more. Shorter backoffs.",
			DoNot:  "Raise it without bound: waiting calls hold their requests and their callers.",
		},
		{
			Reason: policy.ReasonBudgetExhausted,
			Means: "The [bucket](load.md) of extra attempts is too empty: too many of the last ones did not help, " +
				"and neither successes nor time have filled it since.",
			LookAt: "The server, which this limit protects. `stagger.budget.balance` ÷ `capacity` shows for how long.",
			Change: "If it happens without an outage, raise `size` of the budget, or `perSuccess` for clients with many calls.",
			DoNot:  "Write `budget: NONE`, or raise the numbers during the outage: retries would then make it last.",
		},
		{
			Reason: policy.ReasonRetry,
			Means:  "All checks passed: another attempt follows. With `mode=\"OBSERVE\"` it would have followed.",
			LookAt: "Its rate. A few percent of the calls mean short faults; more mean a lasting one.",
			Change: "Fix the failure.",
			DoNot:  "Alert on single retries.",
		},
		{
			Reason: policy.ReasonHedge,
			Means:  "All checks passed: another attempt follows in parallel to a slow one.",
			LookAt: "Its rate. If it is high, the method is slower than `hedgingDelay` or `perAttemptTimeout` expect.",
			Change: stopIt + "Else the delay. `hedgingQuantile` follows the latency.",
			DoNot:  "Shorten the delay while all servers are slow.",
		},
		{
			Reason: policy.ReasonSucceeded,
			Means:  "The last attempt ended with OK.",
		},
		{
			Reason: policy.ReasonDeadlineExceeded,
			Means: "The caller's own deadline, or the policy's `timeout`, has passed. In a chain, the user's deadline often comes as a " +
				"cancellation, with the code `CANCELLED`: within the last 5 ms, and the last tenth of the call's time, it counts as the deadline.",
			LookAt: "The error names the last error of a server. Without one, there was no response.",
			Change: stopIt + "`perAttemptTimeout` asks another server while there is time. `timeout`, if it is too short.",
			DoNot:  "Raise a layer's deadlines above its callers': it would work for callers that have left.",
		},
		{
			Reason: policy.ReasonCancelled,
			Means:  "The caller has cancelled the call, long before its deadline. With `slow=\"true\"`, an attempt was slow.",
			LookAt: "Whether a user has left, or a service above has given up.",
			Change: strings.TrimSpace(stopIt),
			DoNot:  "Continue the work in a fresh context, unless it must be done.",
		},
		{
			Reason: policy.ReasonClosed,
			Means:  "The ClientConn or the Retrier (`Retrier.Close`, for SIGTERM) was closed while the call ran or waited.",
			LookAt: "The order in which the program stops.",
			Change: "Close connections after their last calls, and call `Retrier.Close` before `GracefulStop`.",
			DoNot:  "Close a connection to get rid of a bad backend: gRPC reconnects by itself.",
		},
		{
			Reason: policy.ReasonNotConnected,
			Means:  "No connection could be made within `maxConnectionWait` (3 s), or the outage is older than 5 s, so calls don't wait.",
			LookAt: "Address, name resolution, certificates, network. The error is that of the last connection.",
			Change: "`maxConnectionWait`, if restarts take longer than 3 s.",
			DoNot:  "Set `waitForReady` without a deadline: calls then wait forever.",
		},
		{
			Reason: policy.ReasonModeOff,
			Means: "The [mode](modes.md) of the Retrier, the policy file or the entry prevents another attempt. With " +
				"`mode=\"OBSERVE\"`, another attempt would have followed.",
			LookAt: "`stagger.policy.info`, `Retrier.State`, and the log line `mode set`: when and why retries were turned off.",
			Change: "`mode` in the policy file, or the settings of `Retrier.SetMode`. The strictest applies.",
			DoNot:  "Switch on at full rate after a long outage: begin with a few instances.",
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
			return Meaning{m.Reason, m.Question, plain(m.Means), plain(m.LookAt), plain(m.Change), plain(m.DoNot)}, nil
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
