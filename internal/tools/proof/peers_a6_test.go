// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

const (
	unavailable = `"UNAVAILABLE"`
	doubling    = 2
)

// standard is A6's example of a retryPolicy.
var standard = retries(4, 100*ms, time.Second, doubling, unavailable)

// hedged is A6's example of a hedgingPolicy.
var hedged = hedges(4, 500*ms, `"UNAVAILABLE", "INTERNAL", "ABORTED"`)

var down = fails(codes.Unavailable)

// The statements of gRFC A6 on retries and hedges, section by section.
var fromA6 = []scenario{
	{
		name: "two attempts fail with a retryable code", entry: standard, serves: []testserver.Step{down.Times(2), testserver.OK()},
		peer: "OK after 300ms, requests at 0s, 100ms, 300ms",
	},
	{
		name: "all attempts fail", entry: standard, serves: []testserver.Step{down},
		peer: "UNAVAILABLE after 700ms, requests at 0s, 100ms, 300ms, 700ms",
	},
	{
		name: "a code that is not retryable", entry: standard, serves: []testserver.Step{fails(codes.NotFound)},
		peer: "NOT_FOUND after 0s, requests at 0s",
	},
	{
		name: "the backoff reaches `maxBackoff`", entry: retries(4, 100*ms, 200*ms, 10, unavailable), serves: []testserver.Step{down},
		peer: "UNAVAILABLE after 500ms, requests at 0s, 100ms, 300ms, 500ms",
	},
	{
		name: "`maxAttempts` of 9 is 5", entry: retries(9, 100*ms, 100*ms, 1, unavailable), serves: []testserver.Step{down},
		peer: "UNAVAILABLE after 400ms, requests at 0s, 100ms, 200ms, 300ms, 400ms",
	},
	{
		name: "codes as numbers and in lower case", entry: retries(3, 100*ms, time.Second, doubling, `14, "aborted"`),
		serves: []testserver.Step{down, fails(codes.Aborted), testserver.OK()},
		peer:   "OK after 300ms, requests at 0s, 100ms, 300ms",
	},
	{
		name: "the deadline passes during a backoff", entry: standard, serves: []testserver.Step{down}, deadline: 250 * ms,
		peer: "DEADLINE_EXCEEDED after 250ms, requests at 0s, 100ms",
		ours: "UNAVAILABLE after 100ms, requests at 0s, 100ms",
		why:  "The next attempt would begin after the deadline, so the server's error is returned at once (`deadline_too_close`).",
	},
	{
		name: "the policy sets no jitter", serves: []testserver.Step{down},
		entry: `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"], "budget": "NONE"}`,
		peer:  "UNAVAILABLE after 300ms, requests at 0s, 100ms, 300ms",
		ours:  "UNAVAILABLE after 150ms, requests at 0s, 50ms, 150ms",
		why:   "The default is full jitter, here with the mean; `jitter: PROPORTIONAL` is gRPC's.",
	},
	{
		name: "the policy names the service only", entry: standard, whole: true, serves: []testserver.Step{down.Times(2), testserver.OK()},
		peer: "OK after 300ms, requests at 0s, 100ms, 300ms",
		ours: "UNAVAILABLE after 0s, requests at 0s",
		why:  "An entry for a whole service declares no method idempotent; `idempotency: ASSUME` does.",
	},
	{
		name: "the policy sets no throttling, and 100 calls fail", serves: []testserver.Step{down}, calls: 100,
		entry: `"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`,
		peer:  "400 requests for 100 calls",
		ours:  "114 requests for 100 calls",
		why:   "A policy that names no budget has the default one; `budget: NONE` is gRPC's behavior.",
	},
	{
		name: "throttling with 4 tokens, and 3 calls fail", entry: retriesByFile(4), rest: `"retryThrottling": {"maxTokens": 4, "tokenRatio": 0.1}, `,
		serves: []testserver.Step{down}, calls: 3,
		peer: "4 requests for 3 calls",
	},
	{
		name: "the server asks for a delay of 1 s", entry: standard, serves: []testserver.Step{down.Pushback("1000"), down.Times(2), testserver.OK()},
		peer: "OK after 1.3s, requests at 0s, 1s, 1.1s, 1.3s",
		ours: "OK after 1.35s, requests at 0s, 1.05s, 1.15s, 1.35s",
		why:  "The server's delay is prolonged by up to 10 %, so that clients with the same delay don't return together.",
	},
	{
		name: "the server asks not to retry", entry: standard, serves: []testserver.Step{down.Pushback("-1")},
		peer: "UNAVAILABLE after 0s, requests at 0s",
	},
	{
		name: "the server's delay is no number", entry: standard, serves: []testserver.Step{down.Pushback("soon")},
		peer: "UNAVAILABLE after 0s, requests at 0s",
	},
	{
		name: "the server asks for a delay after the last attempt", entry: retries(2, 100*ms, time.Second, 1, unavailable), serves: []testserver.Step{down, down.Pushback("50")},
		peer: "UNAVAILABLE after 100ms, requests at 0s, 100ms",
	},
	{
		name: "a unary call fails after its headers", entry: standard, serves: []testserver.Step{down.Header(metadata.Pairs("key", "value")), testserver.OK()},
		peer: "UNAVAILABLE after 0s, requests at 0s",
		ours: "OK after 100ms, requests at 0s, 100ms",
		why:  "The application sees the headers of a unary call only with its result; `commitOn: HEADERS` is gRPC's behavior.",
	},
	{
		name: "a server stream fails after its first message", entry: standard, kind: serverStream,
		serves: []testserver.Step{moves.Play(moves.Receive(1), moves.Send(text)).Then(down)},
		peer:   "UNAVAILABLE after 0s, 1 messages, requests at 0s",
	},
	{
		name: "a server stream fails before its first message", entry: standard, kind: serverStream,
		serves: []testserver.Step{down, testserver.OK(text, text)},
		peer:   "OK after 100ms, 2 messages, requests at 0s, 100ms",
	},
	{
		name: "an upload outgrows the buffer", entry: standard, kind: clientStream, messages: 2, options: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(39)},
		serves: []testserver.Step{moves.Play(moves.Receive(2)).Then(down)},
		peer:   "UNAVAILABLE after 0s, requests at 0s",
	},
	{
		name: "retries say how many attempts went before", entry: standard, serves: []testserver.Step{down.Times(2), testserver.OK()}, shows: []string{"grpc-previous-rpc-attempts"},
		peer: "OK after 300ms, requests at 0s, 100ms, 300ms, request 2 has grpc-previous-rpc-attempts: 1, request 3 has grpc-previous-rpc-attempts: 2",
	},
	{
		name: "hedges, and no answer", entry: hedged, serves: []testserver.Step{testserver.Hang()}, deadline: 3 * time.Second,
		peer: "DEADLINE_EXCEEDED after 3s, requests at 0s, 500ms, 1s, 1.5s",
		ours: "DEADLINE_EXCEEDED after 3s, requests at 0s",
		why:  "Nothing shows yet that the service answers faster, so more requests might only prolong its queue (`latency_unknown`).",
	},
	{
		name: "hedges, and no answer from a service that is known to be fast", entry: hedged, known: true, serves: []testserver.Step{testserver.Hang()}, deadline: 3 * time.Second,
		peer: "DEADLINE_EXCEEDED after 3s, requests at 0s, 500ms, 1s, 1.5s",
	},
	{
		name: "a hedge answers first", known: true, entry: hedged, serves: []testserver.Step{testserver.Hang(), answersAfter(100*ms, codes.OK)},
		peer: "OK after 600ms, requests at 0s, 500ms",
	},
	{
		name: "a hedge fails with a non-fatal code: the next comes at once", known: true, entry: hedged,
		serves: []testserver.Step{testserver.Hang(), answersAfter(100*ms, codes.Unavailable), testserver.Hang(), answersAfter(100*ms, codes.OK)},
		peer:   "OK after 1.2s, requests at 0s, 500ms, 600ms, 1.1s",
	},
	{
		name: "a hedge fails with a fatal code", known: true, entry: hedged, serves: []testserver.Step{testserver.Hang(), fails(codes.NotFound)},
		peer: "NOT_FOUND after 500ms, requests at 0s, 500ms",
	},
	{
		name: "all hedges fail", known: true, entry: hedged, serves: []testserver.Step{down},
		peer: "UNAVAILABLE after 0s, requests at 0s, 0s, 0s, 0s",
	},
	{
		name: "hedges without a delay", known: true, entry: hedges(4, 0, unavailable), serves: []testserver.Step{answersAfter(100*ms, codes.OK)},
		peer: "OK after 100ms, requests at 0s, 0s, 0s, 0s",
	},
	{
		name: "a hedge's answer asks for no more", known: true, entry: hedged, serves: []testserver.Step{answersAfter(1200*ms, codes.OK), down.Pushback("-1"), testserver.OK()},
		peer: "OK after 1.2s, requests at 0s, 500ms",
	},
	{
		name: "a hedge's answer asks for a delay of 700 ms", known: true, entry: hedged,
		serves: []testserver.Step{testserver.Hang(), down.Pushback("700"), testserver.Hang(), testserver.OK()},
		peer:   "OK after 1.7s, requests at 0s, 500ms, 1.2s, 1.7s",
		ours:   "OK after 1.735s, requests at 0s, 500ms, 1.235s, 1.735s",
		why:    "As for retries.",
	},
}

// text is a message.
var text = wrapperspb.String("reply")

// retriesByFile returns a retryPolicy of n attempts whose budget is the file's throttling.
func retriesByFile(n int) string {
	return fmt.Sprintf(`"retryPolicy": {"maxAttempts": %d, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`, n)
}
