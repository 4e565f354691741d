// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// linear is the setting of go-grpc-middleware's suite: three attempts, 50 ms apart.
var linear = retries(3, 50*ms, 50*ms, 1, `"UNAVAILABLE", "DATA_LOSS"`)

// five is the same with five attempts after another code, which the peer's suite sets for the call.
var five = retries(5, 50*ms, 50*ms, 1, `"RESOURCE_EXHAUSTED"`)

// theirs returns settings of go-grpc-middleware: n attempts with a wait in between.
func theirs(n uint, apart time.Duration, after ...codes.Code) []retry.CallOption {
	return []retry.CallOption{retry.WithMax(n), retry.WithBackoff(retry.BackoffLinear(apart)), retry.WithCodes(after...)}
}

// ofText retries errors that contain a text, whatever their code.
func ofText(text string) []interceptor.Option {
	return []interceptor.Option{interceptor.WithClassifier(func(_ context.Context, _ string, _ any, err error) interceptor.Verdict {
		if err != nil && strings.Contains(err.Error(), text) {
			return interceptor.VerdictRetry
		}
		return interceptor.VerdictByCode
	})}
}

// The assertions of go-grpc-middleware's suite for its retry interceptors, and further differences. All its options are in
// the policy. The interceptors themselves are played as well.
var fromMiddleware = []scenario{
	{
		name: "a code that is not retryable", entry: linear, serves: []testserver.Step{fails(codes.Internal)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "INTERNAL after 0s, requests at 0s",
	},
	{
		name: "the server cancels", entry: linear, serves: []testserver.Step{fails(codes.Canceled)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "CANCELLED after 0s, requests at 0s",
	},
	{
		name: "a server stream fails with a code that is not retryable", entry: linear, kind: serverStream, serves: []testserver.Step{fails(codes.Internal)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "INTERNAL after 0s, 0 messages, requests at 0s",
	},
	{
		name: "two attempts fail", entry: linear, serves: []testserver.Step{fails(codes.DataLoss).Times(2), testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 100ms, requests at 0s, 50ms, 100ms",
	},
	{
		name: "all attempts fail", entry: linear, serves: []testserver.Step{fails(codes.DataLoss)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "DATA_LOSS after 100ms, requests at 0s, 50ms, 100ms",
	},
	{
		name: "four attempts fail with another code", entry: five, serves: []testserver.Step{fails(codes.ResourceExhausted).Times(4), testserver.OK()},
		theirs: theirs(5, 50*ms, codes.ResourceExhausted),
		peer:   "OK after 200ms, requests at 0s, 50ms, 100ms, 150ms, 200ms",
	},
	{
		name: "a function finds errors by their text", entry: retries(5, 50*ms, 50*ms, 1, unavailable), retrier: ofText("scripted"),
		serves: []testserver.Step{fails(codes.ResourceExhausted).Times(4), testserver.OK()},
		theirs: append(theirs(5, 50*ms), retry.WithRetriable(func(err error) bool { return strings.Contains(err.Error(), "scripted") })),
		peer:   "OK after 200ms, requests at 0s, 50ms, 100ms, 150ms, 200ms",
	},
	{
		name: "two attempts of a server stream fail", entry: linear, kind: serverStream, serves: []testserver.Step{fails(codes.DataLoss).Times(2), testserver.OK(text, text, text)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 100ms, 3 messages, requests at 0s, 50ms, 100ms",
	},
	{
		name: "a server stream fails after two messages", entry: linear, kind: serverStream,
		serves: []testserver.Step{moves.Play(moves.Receive(1), moves.Send(text, text)).Then(down), testserver.OK(text, text, text)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 50ms, 5 messages, requests at 0s, 50ms",
		ours:   "UNAVAILABLE after 0s, 2 messages, requests at 0s",
		why:    "The first message commits a stream. Else the application would receive two messages twice. `interceptor.Resume` continues a stream.",
	},
	{
		name: "an upload fails", entry: linear, kind: clientStream, serves: []testserver.Step{down, testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "UNIMPLEMENTED after 0s, no request",
		ours:   "OK after 50ms, requests at 0s, 50ms",
		why:    "Streams of all kinds are retried, from a bounded buffer.",
	},
	{
		name: "the server is away for longer than all attempts", entry: linear, kind: serverStream, away: 150 * ms,
		serves: []testserver.Step{testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "UNAVAILABLE after 100ms, 0 messages, no request",
		ours:   "OK after 2.875s, 1 messages, requests at 2.875s",
		why:    "The call waits for a connection, up to `maxConnectionWait`. gRPC connects again after 1 s, and calls that waited are spread over some seconds.",
	},
	{
		name: "the server is back soon, and 40 attempts are allowed", entry: retries(40, 60*ms, 60*ms, 1, unavailable), rest: `"maxAttemptsLimit": 40, `,
		kind: serverStream, away: 50 * ms, serves: []testserver.Step{testserver.OK()},
		theirs: theirs(40, 60*ms, codes.Unavailable),
		peer:   "OK after 1.02s, 1 messages, requests at 1.02s",
		ours:   "OK after 2.875s, 1 messages, requests at 2.875s",
		why:    "The same.",
	},
	{
		name: "the server is away for longer than the deadline", entry: linear, kind: serverStream, away: 150 * ms, deadline: 50 * ms,
		serves: []testserver.Step{testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "DEADLINE_EXCEEDED after 50ms, 0 messages, no request",
		ours:   "UNAVAILABLE after 0s, 0 messages, no request",
		why:    "The next attempt would begin after the deadline, so the error is returned at once (`deadline_too_close`).",
	},
	{
		name: "the deadline passes during a backoff", entry: retries(3, 200*ms, 200*ms, 1, unavailable), serves: []testserver.Step{down}, deadline: 100 * ms,
		theirs: theirs(3, 200*ms, codes.Unavailable),
		peer:   "DEADLINE_EXCEEDED after 100ms, requests at 0s",
		ours:   "UNAVAILABLE after 0s, requests at 0s",
		why:    "The same. The error is the server's.",
	},
	{
		name: "retries have a header", entry: linear, serves: []testserver.Step{down, testserver.OK()}, shows: []string{"x-retry-attempt", "grpc-previous-rpc-attempts"},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 50ms, requests at 0s, 50ms, request 2 has x-retry-attempt: 1",
		ours:   "OK after 50ms, requests at 0s, 50ms, request 2 has grpc-previous-rpc-attempts: 1",
		why:    "That is gRPC's own header.",
	},
	{
		name: "the server asks for a delay of 1 s", entry: linear, serves: []testserver.Step{down.Pushback("1000"), testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 50ms, requests at 0s, 50ms",
		ours:   "OK after 1.05s, requests at 0s, 1.05s",
		why:    "The server's delay replaces the backoff (pushback, RetryInfo, Retry-After), prolonged by up to 10 %.",
	},
	{
		name: "the method is not declared idempotent", entry: linear, whole: true, serves: []testserver.Step{down.Times(2), testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 100ms, requests at 0s, 50ms, 100ms",
		ours:   "UNAVAILABLE after 0s, requests at 0s",
		why:    "A call that may have taken effect is retried only if its method is [declared idempotent](../idempotency.md).",
	},
}

// thrice approximates failsafe-go's retry policy, three attempts without a delay, in a policy file.
var thrice = retries(3, time.Nanosecond, time.Nanosecond, 1, `"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"`)

// notYet retries replies that ask for it.
func notYet() []interceptor.Option {
	return []interceptor.Option{interceptor.WithClassifier(func(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
		if m, ok := reply.(*wrapperspb.StringValue); ok && err == nil && m.GetValue() == "retry" {
			return interceptor.VerdictRetry
		}
		return interceptor.VerdictByCode
	})}
}

var notReady = testserver.OK(wrapperspb.String("retry"))

// The assertions of failsafe-go's suite for its gRPC client interceptor, on retries, hedges and contexts.
var fromFailsafe = []scenario{
	{
		name: "a call succeeds", entry: thrice, serves: []testserver.Step{testserver.OK()},
		peer: "OK after 0s, requests at 0s",
	},
	{
		name: "all attempts fail with UNAVAILABLE", entry: thrice, serves: []testserver.Step{down},
		peer: "UNAVAILABLE after 2ns, requests at 0s, 1ns, 2ns",
	},
	{
		name: "all attempts fail with DEADLINE_EXCEEDED", entry: thrice, serves: []testserver.Step{fails(codes.DeadlineExceeded)},
		peer: "DEADLINE_EXCEEDED after 2ns, requests at 0s, 1ns, 2ns",
	},
	{
		name: "all attempts fail with RESOURCE_EXHAUSTED", entry: thrice, serves: []testserver.Step{fails(codes.ResourceExhausted)},
		peer: "RESOURCE_EXHAUSTED after 2ns, requests at 0s, 1ns, 2ns",
	},
	{
		name: "two attempts fail", entry: thrice, serves: []testserver.Step{down.Times(2), testserver.OK()},
		peer: "OK after 2ns, requests at 0s, 1ns, 2ns",
	},
	{
		name: "two replies mean \"not yet\"", entry: thrice, retrier: notYet(), serves: []testserver.Step{notReady.Times(2), testserver.OK()},
		peer: "OK after 2ns, requests at 0s, 1ns, 2ns",
	},
	{
		name: "the first call of a method is slow, and hedged", entry: hedges(2, 80*ms, ""), serves: []testserver.Step{answersAfter(100*ms, codes.OK)},
		peer: "OK after 100ms, requests at 0s, 80ms",
		ours: "OK after 100ms, requests at 0s",
		why:  "Nothing shows yet that the service answers faster, so more requests might only prolong its queue (`latency_unknown`).",
	},
	{
		name: "a slow call is hedged", entry: hedges(2, 80*ms, ""), known: true, serves: []testserver.Step{answersAfter(100*ms, codes.OK)},
		peer: "OK after 100ms, requests at 0s, 80ms",
	},
	{
		name: "the context is cancelled", entry: thrice, serves: []testserver.Step{answersAfter(time.Second, codes.OK)}, cancel: 50 * ms,
		peer: "CANCELLED after 50ms, requests at 0s",
	},
	{
		name: "calls follow each other", entry: thrice, serves: []testserver.Step{testserver.OK()}, calls: 3,
		peer: "3 requests for 3 calls",
	},
	{
		name: "a stream fails", entry: thrice, kind: serverStream, serves: []testserver.Step{down, testserver.OK(text)},
		peer: "UNAVAILABLE after 0s, 0 messages, requests at 0s",
		ours: "OK after 1ns, 1 messages, requests at 0s, 1ns",
		why:  "Streams of all kinds are retried, from a bounded buffer.",
	},
	{
		name: "the server asks not to retry", entry: thrice, serves: []testserver.Step{down.Pushback("-1")},
		peer: "UNAVAILABLE after 2ns, requests at 0s, 1ns, 2ns",
		ours: "UNAVAILABLE after 0s, requests at 0s",
		why:  "Pushback is obeyed, as in every gRPC client.",
	},
	{
		name: "the method is not declared idempotent", entry: thrice, whole: true, serves: []testserver.Step{down.Times(2), testserver.OK()},
		peer: "OK after 2ns, requests at 0s, 1ns, 2ns",
		ours: "UNAVAILABLE after 0s, requests at 0s",
		why:  "A call that may have taken effect is retried only if its method is [declared idempotent](../idempotency.md).",
	},
}
