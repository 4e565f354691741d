// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package payments is an example of the other half of an idempotency key: the server that knows by it
// that two attempts are one call. A client that sends the same key with every attempt may repeat even a
// payment, since [Deduplicate] carries it out once:
//
//	answers, err := payments.NewAnswers(24*time.Hour, 100_000)
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(payments.Deduplicate(answers)))
//
// # What it does
//
//   - The same key again: the first answer again, with the header idempotent-replayed: true. The handler
//     is not called.
//   - The same key while the first call still runs: the second waits for the first, and gets its answer. So
//     the client's policy says onAttemptTimeout: RETRY, which cancels a slow attempt when the next is sent;
//     beside a first one that is stuck, others would be stuck too.
//   - A call that failed is forgotten, and the next with its key is carried out. So a handler must not
//     return an error once it has taken effect.
//   - A handler that panicked may have taken effect or not: all later calls with its key fail, with ABORTED.
//   - The same key with another request, two keys, or a key of more than 255 bytes: INVALID_ARGUMENT. Without
//     a key, a call passes.
//   - No room for one more answer: RESOURCE_EXHAUSTED, rather than forget an answer that is still needed.
//
// # What a real one needs
//
// This one keeps its answers in memory. They are lost with the process, and a second server knows nothing
// of them, so it shows the protocol and no more. With money:
//
//   - Write key, fingerprint of the request and answer to the database of the effect, in the same
//     transaction: a crash then leaves both or neither. A unique index over the key lets one of two
//     concurrent calls wait for the other, on any server.
//   - Make the key a part of the caller's identity (account, key), so that nobody can ask for another's answer.
//   - Pass a key on to what the handler calls itself, such as a card network: it is at the end of the chain
//     that the payment is made.
//   - Keep answers for longer than anybody repeats a call: not only the retries of one call, which end with
//     its deadline, but the application's own, and the person who presses the button again.
package payments

import _ "embed" // for the policy file

// Policy is the file retry.yaml: the policy of a client that sends a key. It is not to be changed.
//
//go:embed retry.yaml
var Policy []byte

// File is the name of the policy file, for messages about it.
const File = "retry.yaml"

// Pay is the method that the policy speaks of.
const Pay = "/acme.payments.v1.PaymentService/Pay"
