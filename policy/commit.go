// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Commit is what made an attempt the only one of its call. Metrics, logs and errors print it beside
// [ReasonCommitted].
type Commit string

// What commits. A unary call shows nothing before it ends, so that only headers can commit it, by a
// policy with commitOn HEADERS.
const (
	CommitNone            Commit = ""
	CommitMessage         Commit = "message"          // the application has received one
	CommitHeaders         Commit = "headers"          // it has seen them, or the policy says commitOn HEADERS
	CommitContext         Commit = "context"          // it has asked for the attempt's context
	CommitTrailer         Commit = "trailer"          // no longer given: Trailer commits nothing
	CommitBufferFull      Commit = "buffer_full"      // a message did not fit into the replay buffer
	CommitPreparedMessage Commit = "prepared_message" // a grpc.PreparedMsg, whose bytes nobody knows, was sent
	CommitUnsendable      Commit = "unsendable"       // a message could not be sent, and could not be by another attempt
)
