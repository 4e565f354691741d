// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/document"
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

// Meanings returns the meanings of all reasons, in order. docs/runbook.md, the debug page and stagger explain --reason show
// them; `make generate` writes the pages.
func Meanings() []Meaning {
	return withQuestions([]Meaning{
		{
			Reason: policy.ReasonNonRetryable,
			Means:  "The policy does not list the code, or the same call would fail again, as with a message that is too large.",
			LookAt: "The code of the error, and `retryableStatusCodes` of the method's entry (`stagger explain`).",
			Change: "List the code if another attempt may help. Use `codeOverrides` if the server means something else by it.",
			DoNot:  "List `INVALID_ARGUMENT`, `NOT_FOUND` or similar codes: the same call fails again.",
		},
		{
			Reason: policy.ReasonCommitted,
			Means:  "The application has seen part of the attempt (a message, headers, `Context` or `Trailer`), or the messages that the stream has sent did not fit into the replay buffer.",
			LookAt: "`Error.Commit`, which names what committed the call.",
			Change: "Use `interceptor.Resume` for server streams. Raise `grpc.MaxRetryRPCBufferSize` and `WithMaxReplayBytes` for the buffer. Do not ask for `Header` or `Context` before the first message.",
			DoNot:  "Repeat the call by hand: the application would see the first messages twice.",
		},
		{
			Reason: policy.ReasonAttemptsExhausted,
			Means:  "The call has had `maxAttempts` attempts, and all have failed.",
			LookAt: "The server: a fault that lasts for so many attempts is not a short one. The log lines of the retries have the codes of all attempts.",
			Change: "Longer backoffs if the fault lasts longer than they do. [Retries elsewhere](retry-elsewhere.md) if one backend is broken.",
			DoNot:  "Raise `maxAttempts`: it multiplies the load of a server that fails already.",
		},
		{
			Reason: policy.ReasonNotIdempotent,
			Means:  "The attempt may have taken effect, and the method is not declared idempotent.",
			LookAt: "Whether the method is idempotent: what happens if the server runs it twice?",
			Change: "If it is, name service and method in an entry, or set `idempotency_level` in the `.proto`. If it is not, an [idempotency key](idempotency.md#idempotency-keys) makes it so, with a server that deduplicates. A server that refuses calls before it works on them can [report it](idempotency.md#calls-that-the-server-did-not-process) (`interceptor.Refuse`).",
			DoNot:  "Write `idempotency: ASSUME` over a whole service to get rid of the reason.",
		},
		{
			Reason: policy.ReasonPushbackStop,
			Means:  "The server forbade another attempt, or asked for a longer delay than `maxPushback`.",
			LookAt: "Which server said so: the service itself, or one below it that has given up ([chains](chains.md)).",
			Change: "Fix the failure there. Raise `maxPushback` if long delays are meant and callers can wait.",
			DoNot:  "Filter the trailer out. It keeps the attempts of several layers from multiplying.",
		},
		{
			Reason: policy.ReasonFollowed,
			Means:  "The attempt was [slow](hedging.md#slow-attempts), another was sent in parallel, and that one still runs. It is a reason of an attempt, never of a call: the call goes on.",
			DoNot:  "Count it as a failure of a call.",
		},
		{
			Reason: policy.ReasonChainStop,
			Means:  "This call is part of a retry by [an upstream caller](chains.md), and the policy's `chain` leaves retries to that caller.",
			LookAt: "Whether the upstream caller retries: its header `grpc-previous-rpc-attempts` says that it did.",
			Change: "Set `chain: ALLOW`, or `ONCE`, if only this layer knows how to retry.",
			DoNot:  "Let all layers retry: three layers of three attempts make 27 requests of one call.",
		},
		{
			Reason: policy.ReasonBreakerOpen,
			Means:  "The program's [circuit breaker](policy-file.md#circuit-breakers) is open.",
			LookAt: "The breaker's own metrics, and why it opened: it has seen the failures before this one.",
			Change: "Its thresholds, if it opens without need.",
			DoNot:  "Remove it in the middle of an outage: all the calls that it holds back come at once.",
		},
		{
			Reason: policy.ReasonLatencyUnknown,
			Means:  "A hedging delay is over, and [too few answers](hedging.md#too-few-calls) of the method are known, fewer than 20 in the last minute. The attempt may take no longer than all others, so it is not hedged.",
			LookAt: "How often one process calls the method. In the first moments of a process it is normal.",
			Change: "For a method with fewer than 20 calls in 30 s, use `perAttemptTimeout` with a value that few calls reach, in place of a `hedgingPolicy`.",
			DoNot:  "Set `hedgingDelay: 0s` to get around it: that is two requests for every call.",
		},
		{
			Reason: policy.ReasonSlowEverywhere,
			Means:  "All of the method's [last five answers](overload.md#the-last-answers) took more than a tenth of their calls' time, or one of them took longer than the `perAttemptTimeout` that is over. All servers are slow: another attempt would lengthen their queue.",
			LookAt: "The service's latency and its queue. It is overloaded, or a service that it depends on is.",
			Change: "Capacity. `perAttemptTimeout`, if the method has become slower for good: it must be above what nearly all answers take.",
			DoNot:  "Replace timeouts by hedges: they wait in the same queue.",
		},
		{
			Reason: policy.ReasonOverloaded,
			Means:  "[Admission](admission.md) expects no answer before the deadline: the last answers took most of that time. A call with 0 attempts was not sent at all, and ended with `RESOURCE_EXHAUSTED`.",
			LookAt: "The service's latency against the deadlines of its callers. The debug page counts refused calls per method.",
			Change: "Capacity, or less work. Longer deadlines only if callers can wait. `criticality: SHEDDABLE` for calls that may fail first.",
			DoNot:  "Retry these errors in the application: refusing them lets the other calls be answered.",
		},
		{
			Reason: policy.ReasonDeadlineTooClose,
			Means:  "The wait and an attempt of `minAttemptTime` would not end before the deadline. The caller has the error at once.",
			LookAt: "Deadlines against backoffs: `stagger explain --deadline` plays them.",
			Change: "A longer deadline or `timeout`, or shorter backoffs.",
			DoNot:  "Remove deadlines. Calls without one wait for as long as a server hangs.",
		},
		{
			Reason: policy.ReasonTooManyWaiting,
			Means:  "As many calls wait for their next attempt as `maxWaiting` (10,000) allows. Those of one target take half at most.",
			LookAt: "The target: most likely it is down.",
			Change: "`maxWaiting` if there is memory for more. Shorter backoffs.",
			DoNot:  "Raise it without bound: calls that wait hold their requests, and their callers.",
		},
		{
			Reason: policy.ReasonBudgetExhausted,
			Means:  "The traffic has not earned another attempt: too many of the last ones did not help.",
			LookAt: "The server: this protects it. `stagger.budget.balance` ÷ `capacity` shows how long it has been so.",
			Change: "If it happens without an outage, raise `percent` of the budget, or `minPerSecond` for clients with few calls.",
			DoNot:  "Write `budget: NONE`, or raise the percentage during the outage: retries would then make it last.",
		},
		{
			Reason: policy.ReasonRetry,
			Means:  "Every answer was yes: another attempt follows. With `mode=\"OBSERVE\"` it would have followed.",
			LookAt: "Its rate against that of the calls. A few percent are short faults; more hide a lasting one.",
			Change: "Fix the failure.",
			DoNot:  "Alert on single retries.",
		},
		{
			Reason: policy.ReasonHedge,
			Means:  "Every answer was yes: another attempt follows in parallel to the one that is slow.",
			LookAt: "Its rate. If it is frequent, the method is slower than `hedgingDelay` or `perAttemptTimeout` expect.",
			Change: "The delay. `hedgingQuantile` follows the latency.",
			DoNot:  "Shorten the delay to answer sooner while all servers are slow.",
		},
		{
			Reason: policy.ReasonSucceeded,
			Means:  "The last attempt was answered with OK. `stagger.client.call.retries` counts the calls that need retries to succeed.",
		},
		{
			Reason: policy.ReasonDeadlineExceeded,
			Means:  "The caller's own deadline, or the policy's `timeout`, has passed.",
			LookAt: "The error: it names the last error of a server. Without one, no server has answered.",
			Change: "`perAttemptTimeout` lets another server be asked while there is time. `timeout`, if it is too short.",
			DoNot:  "Raise the deadlines of one layer above those of its callers: it would work for callers that have left.",
		},
		{
			Reason: policy.ReasonCancelled,
			Means:  "The caller has cancelled the call.",
			LookAt: "The caller: a user has left, or a service above has given up.",
			DoNot:  "Go on with the work in a fresh context, unless it must be done.",
		},
		{
			Reason: policy.ReasonClosed,
			Means:  "The ClientConn was closed while the call ran or waited, or the Retrier was (`Retrier.Close`, for SIGTERM): no other attempt follows.",
			LookAt: "The order in which the program stops.",
			Change: "Close connections after their last calls, and call `Retrier.Close` before `GracefulStop`.",
			DoNot:  "Close a connection to get rid of a bad backend: gRPC makes a new one by itself.",
		},
		{
			Reason: policy.ReasonNotConnected,
			Means:  "No connection could be made for as long as a call may wait for one (`maxConnectionWait`), or the outage is older than 10 s (3⅓ times that), so that no call waits.",
			LookAt: "Address, name resolution, certificates, network. The error is that of the last connection.",
			Change: "`maxConnectionWait`, if restarts take longer than 3 s.",
			DoNot:  "Set `waitForReady` without a deadline: calls then wait forever.",
		},
		{
			Reason: policy.ReasonModeOff,
			Means:  "The [mode](modes.md) of the Retrier, the policy file or the method's entry prevents another attempt, or a percentage excludes the call. With `mode=\"OBSERVE\"`, another attempt would have followed.",
			LookAt: "`stagger.policy.info`, `Retrier.State`, and the log line `mode set`, for when and why retries were turned off. `stagger explain` shows the modes of the file.",
			Change: "`mode` and `percent` in the policy file, or the settings of `Retrier.Switch`. The strictest of all these applies.",
			DoNot:  "Switch back on at full rate after a long outage: begin with a `percent`.",
		},
	})
}

func withQuestions(list []Meaning) []Meaning {
	for i := range list {
		for _, s := range decision.Steps() {
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
