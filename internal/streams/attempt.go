// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

// role says which party may call gRPC for an attempt in one direction: the sender calls SendMsg and CloseSend, the receiver
// RecvMsg and Header.
//
//	shut ── opened ──► idle ◄─── asks, gives back ───► app | own
//	                    │ └── committed, nothing left in between ──► direct
//	                    └── it takes nothing more, its end was received ──► ended
type role uint8

const (
	shut   role = iota // the task that opens the attempt, until that returns
	idle               // free: any task may take the role
	app                // one call of the application
	own                // the attempt's goroutine
	direct             // the application, without asking
	ended              // no further calls
)

// held reports whether a task is inside gRPC and will report the result.
func (r role) held() bool { return r == shut || r == app || r == own }

// free reports whether the role can be taken.
func (r role) free() bool { return r == idle || r == direct }

// attempt is one attempt of a call, from the order to open it until its end is reported.
type attempt struct {
	number     int
	record     error // of OnFinish; nil: success
	goroutines int   // those that will ask again
	given      int   // kept messages that were sent to it, or are being sent
	taken      int   // those of given that SendMsg has accepted
	sender     role
	receiver   role
	beside     Kind // the kind of the receiving call, if receiver is app
	closed     bool // CloseSend was called
	deaf       bool // SendMsg fails
	asked      bool // Header has returned
	headed     bool // Header returned headers
	heard      bool // the engine knows of its first message
	again      bool // it has brought a second message
	brought    bool // its goroutine has received a message that the application doesn't have yet
	cancelled  bool // because another attempt won, or the call is over
	finished   bool // OnFinish was called, with record
	claimed    bool // a task reports its end, or has reported it
	overdue    bool
}

// held reports whether a task is inside gRPC for the attempt. That task will report the attempt's end.
func (a *attempt) held() bool { return a.sender.held() || a.receiver.held() }

// opened reports whether the attempt could be opened.
func (a *attempt) opened() bool { return a.sender != shut }

// attended reports whether the attempt has a goroutine that can send.
func (a *attempt) attended() bool {
	free := a.goroutines
	if a.receiver == own {
		free--
	}
	return free > 0
}

// live reports whether the application's calls may still use the attempt.
func (a *attempt) live() bool { return !a.claimed && !a.cancelled }

// claim makes the caller report the attempt's end.
func (a *attempt) claim(e End) End {
	a.claimed = true
	e.Attempt = a.number
	return e
}

// claimEnd claims the end of an attempt for the caller, if the end is known and no other task is inside gRPC for the attempt.
// The application's next call finds the end of the committed attempt, because it may still receive messages; found says that
// it has, or that the application isn't receiving. If OnFinish had no error, the attempt may still have failed, also without
// headers: gRPC calls it that way if the connection was lost before the stream was sent.
func (c *Call) claimEnd(a *attempt, found bool) End {
	switch {
	case a.claimed, a.held():
		return End{}
	case a.finished && a.record != nil && (found || a != c.committed || c.stopped != ""):
		return a.claim(End{Err: a.record})
	case a.finished && a.heard && c.stopped != "": // RecvMsg is about to find the success
		return a.claim(End{})
	case a.cancelled, a.finished && c.stopped != "":
		return a.claim(End{GivenUp: true})
	default:
		return End{}
	}
}
