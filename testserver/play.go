// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"slices"
)

// Play makes moves in a stream, one after the other, and then ends with the step of [Step.Then], or with OK.
// It serves client, server and bidirectional streams, and also unary calls, whose moves are
// Receive(1) and Send of one message.
//
// Only the moves receive and send: unlike other steps, a Play does not wait for a first message,
// and its OK sends no empty one. Messages go out uncompressed. Headers and delay come before
// the moves, in this order, and the messages of Reply and Raw
// after them. It ends early when the client goes away.
func Play(moves ...Move) Step {
	s := Step{plays: true, moves: slices.Clone(moves)}
	if err := checkMoves(moves); err != nil {
		return s.invalid(err)
	}
	return s
}

// Then sets the end of a [Play], after its moves: any step, including another Play.
// That step does not receive a message first, and sends no empty one: Then(OK()) is the default.
func (s Step) Then(end Step) Step {
	switch {
	case !s.plays || s.pick != nil: // Random of a Play isn't a Play
		s = s.invalid(errors.New("Then: only a Play has an end to set: want Play(…).Then(…)"))
	case s.then != nil:
		s = s.invalid(errors.New("Then: the end is set already: want one Then"))
	case s.cuts():
		s = s.invalid(errors.New("Then after Cut: the connection is gone: want one of them"))
	case end.times != 0:
		s = s.invalid(errors.New("Then of a step with Times: want Play(…).Then(…).Times(…)"))
	}
	if end.err != nil {
		s = s.invalid(end.err)
	}
	s.then = &end
	return s
}

// cuts reports whether the moves end the connection.
func (s Step) cuts() bool {
	return len(s.moves) > 0 && s.moves[len(s.moves)-1].last
}

// drops reports whether the step may end by dropping the connection.
func (s Step) drops() bool {
	return s.end == endDrop || s.mayDrop || s.then != nil && s.then.drops()
}

// picks reports whether the step passes the attempt to a function.
func (s Step) picks() bool {
	return s.pick != nil || s.then != nil && s.then.picks()
}
