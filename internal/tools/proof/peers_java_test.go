// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// tens is the retryPolicy of grpc-java's RetryTest: backoffs of ten seconds.
var tens = retries(4, 10*time.Second, 10*time.Second, 1, unavailable)

// hundreds is the hedgingPolicy of its tests: six attempts, a hundred seconds apart.
var hundreds = hedges(6, 100*time.Second, `"UNAVAILABLE", "FAILED_PRECONDITION"`)

// sixAttempts allows six attempts.
const sixAttempts = `"maxAttemptsLimit": 6, `

// The assertions of grpc-java's RetryTest, and of the hedging tests in RetriableStreamTest.
var fromJava = []scenario{
	{
		name: "an upload outgrows the buffer in its second attempt", entry: tens, kind: clientStream, messages: 2, sends: 10 * time.Second,
		options: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(39)},
		serves:  []testserver.Step{moves.Play(moves.Receive(1)).Then(down), moves.Play(moves.Receive(2)).Then(down)},
		peer:    "UNAVAILABLE after 10s, requests at 0s, 10s",
		ours:    "UNAVAILABLE after 20s, requests at 0s, 20s",
		why:     "As in gRPC for Go, a stream is retried during the application's calls. Here it sends its second message after 10 s.",
	},
	{
		name: "an upload fails after 1 s, and its second attempt takes 2 s", entry: tens, kind: clientStream,
		serves: []testserver.Step{answersAfter(time.Second, codes.Unavailable), answersAfter(2*time.Second, codes.OK)},
		peer:   "OK after 13s, requests at 0s, 11s",
	},
	{
		name: "the server cancels", entry: tens, kind: clientStream, serves: []testserver.Step{fails(codes.Canceled)}, deadline: 10 * time.Second,
		peer: "CANCELLED after 0s, requests at 0s",
	},
	{
		name: "hedges of an upload get all its messages", entry: hundreds, rest: sixAttempts, known: true, kind: clientStream, messages: 3, deadline: 300 * time.Second,
		serves: []testserver.Step{testserver.Hang(), moves.Play(moves.Receive(3), moves.Pause(time.Second), moves.Send(text))},
		peer:   "OK after 1m41s, requests at 0s, 1m40s",
		ours:   "DEADLINE_EXCEEDED after 5m0s, requests at 0s",
		why:    "A timer hedges only calls with one request. Others get their next attempt after a failure that is not fatal.",
	},
	{
		name: "no hedge follows the last", entry: hundreds, rest: sixAttempts, known: true, serves: []testserver.Step{testserver.Hang()}, deadline: 700 * time.Second,
		peer: "DEADLINE_EXCEEDED after 11m40s, requests at 0s, 1m40s, 3m20s, 5m0s, 6m40s, 8m20s",
	},
	{
		name: "a hedge fails with a non-fatal code, without a delay from the server", entry: hundreds, rest: sixAttempts, known: true, deadline: 450 * time.Second,
		serves: []testserver.Step{testserver.Hang(), down, testserver.Hang()},
		peer:   "DEADLINE_EXCEEDED after 7m30s, requests at 0s, 1m40s, 3m20s, 5m0s, 6m40s",
		ours:   "DEADLINE_EXCEEDED after 7m30s, requests at 0s, 1m40s, 1m40s, 3m20s, 5m0s, 6m40s",
		why:    "gRFC A6 sends the next hedge at once. grpc-java does so only if the server names a delay.",
	},
	{
		name: "a hedge fails with a fatal code", entry: hundreds, rest: sixAttempts, known: true, serves: []testserver.Step{testserver.Hang(), testserver.Hang(), fails(codes.Internal)},
		peer: "INTERNAL after 3m20s, requests at 0s, 1m40s, 3m20s",
	},
	{
		name: "a hedge's headers come first, its message later, and the other answers in between", entry: hundreds, rest: sixAttempts, known: true, kind: serverStream,
		serves: []testserver.Step{
			moves.Play(moves.Receive(1), moves.Pause(110*time.Second), moves.Send(text)),
			moves.Play(moves.Receive(1), moves.SendHeader(metadata.Pairs("key", "value")), moves.Pause(30*time.Second), moves.Send(text, text)),
		},
		peer: "OK after 2m10s, 2 messages, requests at 0s, 1m40s",
		ours: "OK after 1m50s, 1 messages, requests at 0s, 1m40s",
		why:  "The first message decides, since headers don't tell how soon a message follows.",
	},
	{
		name: "the server asks for no more hedges", entry: hundreds, rest: sixAttempts, known: true, deadline: 500 * time.Second,
		serves: []testserver.Step{testserver.Hang(), down.Pushback("-1"), testserver.Hang()},
		peer:   "DEADLINE_EXCEEDED after 8m20s, requests at 0s, 1m40s",
	},
	{
		name: "the server asks for delays between hedges", entry: hundreds, rest: sixAttempts, known: true,
		serves: []testserver.Step{testserver.Hang(), down.Pushback("101000"), down.Pushback("99000"), fails(codes.Internal)},
		peer:   "INTERNAL after 5m0s, requests at 0s, 1m40s, 3m21s, 5m0s",
		ours:   "INTERNAL after 5m10s, requests at 0s, 1m40s, 3m26.05s, 5m10s",
		why:    "The server's delay is prolonged by up to 10 %, so that clients with the same delay don't return together.",
	},
	{
		name: "the application cancels between hedges", entry: hundreds, rest: sixAttempts, known: true, serves: []testserver.Step{testserver.Hang()}, cancel: 150 * time.Second,
		peer: "CANCELLED after 2m30s, requests at 0s, 1m40s",
	},
	{
		name: "an upload outgrows the buffer between hedges", entry: hundreds, rest: sixAttempts, known: true, kind: clientStream, messages: 2, sends: 150 * time.Second,
		options: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(39)},
		serves:  []testserver.Step{moves.Play(moves.Receive(2), moves.Pause(200*time.Second), moves.Send(text))},
		peer:    "OK after 5m50s, requests at 0s, 1m40s",
		ours:    "OK after 5m50s, requests at 0s",
		why:     "A timer hedges only calls with one request. Others get their next attempt after a failure that is not fatal.",
	},
	{
		name: "throttling stops hedges", known: true, deadline: 500 * time.Second,
		entry:  `"hedgingPolicy": {"maxAttempts": 6, "hedgingDelay": "100s", "nonFatalStatusCodes": ["UNAVAILABLE"]}`,
		rest:   sixAttempts + `"retryThrottling": {"maxTokens": 4, "tokenRatio": 0.8}, `,
		serves: []testserver.Step{testserver.Hang(), down, down, testserver.Hang()},
		peer:   "DEADLINE_EXCEEDED after 8m20s, requests at 0s, 1m40s, 3m20s",
		ours:   "DEADLINE_EXCEEDED after 8m20s, requests at 0s, 1m40s, 1m40s",
		why:    "As above, the next hedge is sent at once. Throttling stops the fourth request for both.",
	},
}
