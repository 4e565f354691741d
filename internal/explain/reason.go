// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// Meaning is what a reason means, and what to do.
type Meaning struct {
	Reason  policy.Reason `json:"reason"`
	Means   string        `json:"means"`
	Remedy  string        `json:"remedy"`
	Refusal string        `json:"question,omitempty"` // of the pipeline, to which it is the no
}

// Meanings are those of all reasons, in their order.
var Meanings = []Meaning{
	{
		Reason: policy.ReasonNonRetryable, Means: "The policy does not list the code, or the same call would fail again.",
		Remedy: "If another attempt may help, list the code in retryableStatusCodes, or let it count as another with codeOverrides.",
	},
	{
		Reason: policy.ReasonCommitted, Means: "The application has seen part of the attempt: a message, headers, Context or Trailer; or the replay buffer was full.",
		Remedy: "The error says what has committed the call. A server stream can go on with interceptor.Resume; the buffer grows with grpc.MaxRetryRPCBufferSize.",
	},
	{
		Reason: policy.ReasonAttemptsExhausted, Means: "The call has had maxAttempts attempts, and all have failed.",
		Remedy: "Look at the server: what fails so often is no blip. More attempts seldom help; longer backoffs may.",
	},
	{
		Reason: policy.ReasonNotIdempotent, Means: "The attempt may have taken effect, and nobody declares the method safe to repeat.",
		Remedy: "If it is safe, name service and method in an entry, set idempotency_level in the .proto, or send an idempotency key. If it is not, this is what protects it; a server that refuses calls before it works on them can say so (interceptor.WithRefuse).",
	},
	{
		Reason: policy.ReasonPushbackStop, Means: "The server forbade a retry, or asked for a longer delay than maxPushback.",
		Remedy: "The server or a service below it has given up already. Look there; raise maxPushback if its delays are meant.",
	},
	{
		Reason: policy.ReasonFollowed, Means: "The attempt was slow, another was sent beside it, and that one still runs.",
		Remedy: "Nothing: the call goes on with the newer attempt.",
	},
	{
		Reason: policy.ReasonChainStop, Means: "This call is part of a retry that a caller further up makes, and the policy's chain leaves it to that.",
		Remedy: "Nothing, if the caller above retries. Else set chain: ALLOW.",
	},
	{
		Reason: policy.ReasonBreakerOpen, Means: "The circuit breaker is open.",
		Remedy: "Look at why the breaker opened: it has seen the failures before this one.",
	},
	{
		Reason: policy.ReasonLatencyUnknown, Means: "Too few answers of the method are known to tell its usual latency, so the attempt may take no longer than all others: it is not hedged.",
		Remedy: "Nothing, in the first moments of a process. If the method is called less often than 20 times in 30 s, use perAttemptTimeout with a value that few calls reach.",
	},
	{
		Reason: policy.ReasonSlowEverywhere, Means: "All of the last five answers of the method took much of their calls' time, or the attempt was slow and so was one of them: all servers are slow, and another attempt would only lengthen their queue.",
		Remedy: "Look at the servers' load: they are slower than perAttemptTimeout. If they always are, raise it above what nearly all answers take.",
	},
	{
		Reason: policy.ReasonOverloaded, Means: "Admission expects no answer before the deadline: the last ones took most of that time. A call with 0 attempts was not made at all.",
		Remedy: "Look at the servers' load: they need capacity. If they are that slow without load, give calls longer deadlines, or take admission out.",
	},
	{
		Reason: policy.ReasonDeadlineTooClose, Means: "The wait and an attempt of minAttemptTime would not end before the deadline.",
		Remedy: "Give the call a longer deadline or timeout, or the policy shorter backoffs.",
	},
	{
		Reason: policy.ReasonTooManyWaiting, Means: "As many calls wait between two attempts as maxWaiting allows.",
		Remedy: "Most likely a server is down, and these calls are its callers. Raise maxWaiting only if there is memory for them.",
	},
	{
		Reason: policy.ReasonBudgetExhausted, Means: "The traffic has not earned another attempt: too many of the last ones did not help.",
		Remedy: "Look at the server: this protects it. If it happens without an outage, raise the budget's percent, or minPerSecond for clients with few calls.",
	},
	{
		Reason: policy.ReasonRetry, Means: "Every answer was yes: another attempt follows.",
		Remedy: "Nothing.",
	},
	{
		Reason: policy.ReasonHedge, Means: "Every answer was yes: another attempt follows beside the one that is slow.",
		Remedy: "Nothing. If it is frequent, the method has become slower than perAttemptTimeout or hedgingDelay expect.",
	},
	{
		Reason: policy.ReasonSucceeded, Means: "The last attempt was answered with OK.",
		Remedy: "Nothing.",
	},
	{
		Reason: policy.ReasonDeadlineExceeded, Means: "The caller's own deadline, or the policy's timeout, has passed.",
		Remedy: "The error names the last error of a server, if there was one. Without one nobody answered: a perAttemptTimeout lets another server be asked.",
	},
	{
		Reason: policy.ReasonCancelled, Means: "The caller has cancelled the call.",
		Remedy: "Nothing, or look at who cancels: a caller of yours may have given up.",
	},
	{
		Reason: policy.ReasonClosed, Means: "The ClientConn was closed while the call ran.",
		Remedy: "Close connections after their last calls.",
	},
	{
		Reason: policy.ReasonNotConnected, Means: "No connection could be made for as long as a call may wait for one, or the outage is older than 10 s.",
		Remedy: "Look at address, name resolution, certificates and network: the error is that of the last connection. maxConnectionWait is the longest wait.",
	},
	{
		Reason: policy.ReasonModeOff, Means: "The mode of the Retrier, the policy file or the method's entry lets no other attempt be sent, or a percentage leaves the call out.",
		Remedy: "If somebody has switched retries off, ask why. Else look for mode and percent in the policy file, and for Retrier.SetMode; stagger explain shows those of the file.",
	},
}

// MeaningOf finds a reason by its name.
func MeaningOf(name string) (Meaning, error) {
	var names []string
	for _, m := range Meanings {
		if string(m.Reason) == name {
			for _, s := range policy.Steps() {
				if s.No == m.Reason {
					m.Refusal = s.Question
				}
			}
			return m, nil
		}
		names = append(names, string(m.Reason))
	}
	if near := document.Nearest(name, names); near != "" {
		return Meaning{}, fmt.Errorf("reason %q: there is none of that name; did you mean %s?", name, near)
	}
	return Meaning{}, fmt.Errorf("reason %q: must be one of %s", name, strings.Join(names, ", "))
}
