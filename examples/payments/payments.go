// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package payments is an example of the server side of idempotency keys. The server recognizes by the
// key that two attempts are one call. If a client sends the same key with every attempt, it may retry
// even a payment: [Deduplicate] carries it out once.
//
//	answers, err := payments.NewAnswers(24*time.Hour, 100_000)
//	if err != nil {
//		return nil, err
//	}
//	return grpc.NewServer(grpc.ChainUnaryInterceptor(payments.Deduplicate(answers))), nil
//
// # What it does
//
//   - A known key returns the first response, with the header idempotent-replayed: true. The handler is not
//     called.
//   - A key whose first call is still running waits for that call's answer. Therefore the client's policy
//     has onAttemptTimeout: RETRY, which cancels a slow attempt before the next one: if the first attempt
//     hangs, parallel ones would hang too.
//   - A failed call is forgotten, and the next one with its key is carried out. So a handler must not return
//     an error after it has taken effect.
//   - A handler that panicked may have taken effect: all later calls with its key fail with ABORTED.
//   - The same key with another request, two keys, or a key of more than 255 bytes: INVALID_ARGUMENT. Without
//     a key, a call passes.
//   - No room for one more answer: RESOURCE_EXHAUSTED, rather than forget a response that is still needed.
//
// # What a real one needs
//
// This example keeps its answers in memory. They are lost with the process, and a second server does not
// have them. For real payments:
//
//   - Write key, fingerprint of the request and answer to the database of the effect, in the same
//     transaction: a crash then leaves both or neither. A unique index over the key lets one of two
//     concurrent calls wait for the other, on any server.
//   - Combine the key with the caller's identity (account, key), so that callers cannot read others' answers.
//   - Pass a key on to services that the handler calls, such as a card network: the end of the chain makes
//     the payment.
//   - Keep answers for longer than any retry: not only those within one call, which end with its deadline,
//     but also the application's own, and a user who presses the button again.
package payments

import _ "embed" // for the policy file

// Policy is the file retry.yaml: the policy of a client that sends a key. Don't modify it.
//
//go:embed retry.yaml
var Policy []byte

// File is the name of the policy file, for messages about it.
const File = "retry.yaml"

// Pay is the method in the policy.
const Pay = "/acme.payments.v1.PaymentService/Pay"
