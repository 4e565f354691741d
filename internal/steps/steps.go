// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps is what the programs of this module ask of package testserver, and users need not. Package testserver sets
// these functions, since this package cannot import it.
package steps

import "context"

var (
	// Before returns step, a testserver.Step, with a function that is called after its first message has been received and
	// before its headers are sent. The function blocks for as long as it likes, until its context is done; with its error the
	// attempt ends.
	Before func(step any, do func(context.Context) error) any
	// Cut returns a testserver.Step that sends a part of a message and cuts the connection in its middle. It is the end of a
	// Stream. If the client does not read, or the connection is encrypted, so that the middle of a message can't be found, it cuts
	// the connection after 100 ms.
	Cut func() any
	// Invalid returns step, a testserver.Step, with an error that Server.On reports.
	Invalid func(step any, err error) any
	// Raw returns step, a testserver.Step, with messages as raw bytes, which follow those of Step.Reply.
	Raw func(step any, messages [][]byte) any
	// Replace gives a server, a *testserver.Server, other scripts, a map[string][]testserver.Step by their patterns, and drops all
	// attempts and counts, in one step: a call has the scripts and the record of before, or those of after. An error changes nothing.
	Replace func(server, scripts any) error
	// Observe returns a testserver.Option: f is called with every testserver.Attempt when it begins, and again when it has ended.
	Observe func(f func(attempt any)) any
	// HalfClosed reports whether the client has half-closed the stream of a testserver.Attempt.
	HalfClosed func(attempt any) bool
	// Failure says what is impossible in a testserver.Step, as Server.On would report it, or nil.
	Failure func(step any) error
)
