// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

// role is who calls gRPC for an attempt in one direction: the sender calls SendMsg and CloseSend, the receiver
// RecvMsg and Header.
//
//	shut ── opened ──► idle ◄─── asks, gives back ───► app | own
//	                    │ └── committed, nothing left in between ──► direct
//	                    └── it takes nothing more, its end was received ──► ended
type role uint8

const (
	shut   role = iota // the one who opens the attempt, who will come back
	idle               // nobody: who has something to do may take the role
	app                // one call of the application
	own                // the attempt's goroutine
	direct             // the application, without asking
	ended              // nobody any more
)

// held reports whether somebody is inside of gRPC, and tells the result when it comes back.
func (r role) held() bool { return r == shut || r == app || r == own }

// free reports whether the role can be taken.
func (r role) free() bool { return r == idle || r == direct }

// attempt is one attempt of a call, from its order to be opened until its end is reported.
type attempt struct {
	number     int
	sender     role
	receiver   role
	beside     Kind  // whose call the receiver is, if that is app
	goroutines int   // that will ask again
	given      int   // kept messages that it was sent, or is being sent
	taken      int   // of those, how many it has taken
	closed     bool  // it was given the close
	deaf       bool  // it takes nothing more
	asked      bool  // Header has returned
	headed     bool  // with headers
	heard      bool  // the engine has heard of its first message
	brought    bool  // its goroutine has received a message that the application has not yet
	cancelled  bool  // for another attempt, or since the call is over
	finished   bool  // OnFinish was called, with record
	record     error // nil: success
	claimed    bool  // somebody reports its end, or has done so
	overdue    bool  // the driver was told to look whether somebody has
}

// held reports whether somebody will come back, and reports the end if there is one.
func (a *attempt) held() bool { return a.sender.held() || a.receiver.held() }

// opened reports whether the attempt could be opened.
func (a *attempt) opened() bool { return a.sender != shut }

// attended reports whether a goroutine is there that can send.
func (a *attempt) attended() bool {
	free := a.goroutines
	if a.receiver == own {
		free--
	}
	return free > 0
}

// live reports whether the application's calls may still turn to the attempt.
func (a *attempt) live() bool { return !a.claimed && !a.cancelled }

// claim makes the caller the one who reports the attempt's end.
func (a *attempt) claim(e End) End {
	a.claimed = true
	e.Attempt = a.number
	return e
}

// end claims the end of an attempt for the caller, if it is known and nobody else will come back with it. The end
// of the attempt to which the call is committed is found by the application's next call, which may still receive
// messages; found says that this has happened, or that nobody waits for messages. That OnFinish brings no error is no end,
// without headers either: gRPC says so, too, of a stream whose connection has gone before it was sent.
func (c *Call) end(a *attempt, found bool) End {
	switch {
	case a.claimed, a.held():
		return End{}
	case a.finished && a.record != nil && (found || a != c.committed || c.stopped):
		return a.claim(End{Err: a.record})
	case a.cancelled, a.finished && a.record == nil && c.stopped:
		return a.claim(End{GivenUp: true})
	default:
		return End{}
	}
}
