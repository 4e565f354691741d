// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package streams is the state machine of a retried stream. It decides which task sends to each attempt, which receives from it
// and which reports its end, and what each call of the application does next.
//
// A [Call] has no lock, goroutine, timer or connection. It drives the engine of package attempts, which alone decides which
// attempts run and which answer counts. Each party (a call of the application, the goroutine of an attempt) is a [Task]. Its
// driver asks what to do, does it without the lock, and reports the result:
//
//	lock; call.Enter(now, gone)
//	for {
//		order := call.Ask(&task)
//		if order.Do == streams.Wait { call.Exit, act, call.Acted; wait for a change; call.Enter; continue }
//		if order.Do == streams.Return { call.Exit, act, call.Acted; unlock; return }
//		call.Exit, act, call.Acted; unlock; result := what order.Do says; lock; call.Enter
//		if end := call.Done(&task, result); end.Attempt != 0 { unlock; report(end); lock }
//	}
//
// Before a call of the application that needs no decision, the driver asks Lend, which needs neither clock nor Exit.
package streams

import (
	"time"

	"github.com/stagger-go/stagger/internal/decision"
)

// Settings are the properties of a call.
type Settings struct {
	ClientStreams bool // the application sends a stream of messages
	ServerStreams bool // it receives a stream of messages
	// Races lets attempts run in parallel. It requires a policy with parallel attempts, an application that sends one message, and a
	// received message type that can be made. Otherwise the engine is told Alone.
	Races   bool
	Resumes bool // a broken stream may be resumed, so the application never receives without asking
}

// Kind is the kind of a [Task].
type Kind uint8

// The kinds of tasks: the application's calls, and an attempt's own goroutine.
const (
	NewStream Kind = iota + 1 // returns when the stream can be used
	SendMsg
	CloseSend
	RecvMsg
	Header
	Context
	Goroutine // opens Attempt, if it isn't open, and does what the application's calls don't do for it
)

// Task is a running call of the application, or the running goroutine of an attempt. The driver sets the exported fields before
// it first asks, and does not change them.
type Task struct {
	Kind    Kind
	Attempt int             // of a Goroutine, or of a call that used an attempt without asking (Acts.Sends, Acts.Receives)
	Kept    bool            // SendMsg: the message was added to the replay buffer, as [Call.Keeps] allows
	Commit  decision.Commit // SendMsg of an unkept message: the reason
	Makes   bool            // RecvMsg: a message of its type can be made

	begun   bool // it has asked before
	inside  bool // it began while the caller's OnFinish ran
	over    bool // the next order is to return Returns
	returns Returns
	did     Do       // the order in progress; Wait: none
	on      *attempt // the attempt of that order
	beside  bool     // GetHeader: in parallel with the receiver, without its role
	index   int      // SendMsg: the number of the message in the buffer, counted from 0
	sent    bool     // SendMsg: the message was sent before
	reply   *attempt // RecvMsg: the only reply, which is of this attempt; returned if that is the response
}

// Do is the action of an order.
type Do uint8

// All but Wait and Return call gRPC, on the order's attempt.
const (
	Wait      Do = iota // ask again after a change
	Return              // the task is over
	Open                // open the attempt
	Send                // call SendMsg
	Close               // call CloseSend
	GetHeader           // call Header
	Receive             // call RecvMsg
)

// Returns is the result of a call of the application.
type Returns uint8

// The results of a call.
const (
	Nil     Returns = iota // no error. Header and Context: of Order.Attempt; 0: nothing, because the call has no attempt to show
	EOF                    // io.EOF
	Final                  // Order.Err, the result of the call
	Own                    // the error of the task's last gRPC call
	Brought                // no error, and a copy of the message that the goroutine of Order.Attempt has received
)

// Order tells a task what to do next.
type Order struct {
	Do      Do
	Attempt int
	Message int     // Send by a Goroutine: the index of the message in the replay buffer, of which it sends a copy
	Again   bool    // Send by SendMsg: resend the message, as a copy
	Status  bool    // GetHeader: without headers, receive the status
	Beside  bool    // GetHeader: another task receives meanwhile. If not, and gRPC has ended the attempt without headers, receive the status
	Returns Returns // with Return
	Err     error   // with Final: the result of the call; io.EOF after success, never nil
}

// Result is the result of an order, or of a call that did not ask.
type Result struct {
	Err        error // as returned by gRPC
	Headers    bool  // GetHeader: there are headers; the driver has stored them with the attempt. If not, Err is the status, or nil if it was not received
	Panicked   bool  // an inner interceptor has panicked or called Goexit
	Unsendable bool  // Send by a Goroutine: the message can't be copied, because of Err. Nothing was sent
}

// Caller learns that a call is over. The machine calls it inside an event, so the driver holds its lock.
type Caller interface {
	// Conclude makes the response known, once: header, trailer and peer are those of the attempt; 0: of none. It returns
	// the result of the call, io.EOF after success and never nil, and whether the caller must be told: then RecvMsg, SendMsg and NewStream don't
	// return the end before [Call.Told].
	Conclude(attempt int) (tell bool, final error)
	// Amend returns the result of the call for its application if RecvMsg has returned err too late for Conclude: an inner
	// interceptor had received ahead.
	Amend(err error) error
}

// End is the end of an attempt. Its receiver must report it with [Call.Ended], exactly once. The zero End is none.
type End struct {
	Attempt  int
	Err      error // from gRPC or an inner interceptor; nil: success
	GivenUp  bool  // it was cancelled, and its result is unknown
	Panicked bool
	Received bool // RecvMsg has returned Err, after messages of this attempt: Resume may continue the stream
}

// Acts are what the driver does before it releases the lock.
type Acts struct {
	Cancel []int // cancel the contexts of these attempts
	Go     []int // start a goroutine, with its Task, for each of these attempts; open those without a stream
	Report []End // report each, in its own goroutine
	// Wake is when to call [Call.Wake], on the engine's clock; it replaces any earlier value. attempts.Never: not at all.
	// Waking too early changes nothing, so a timer that is set for an earlier time may stay.
	Wake     time.Duration
	Watch    bool // also wake when the channel's state changes
	Idle     bool // no attempt runs while the call waits for Wake: the driver watches context, connection and mode
	Over     bool // the call is over: run callbacks without the lock. True once.
	Moved    bool // waiting tasks must ask again
	Released bool // the replay buffer is no longer needed
	Overdue  int  // call Overdue for this attempt in a second, if the call isn't over then; 0: none
	Sends    int  // the attempt on which SendMsg and CloseSend may be called without asking; 0: none
	Receives int  // the attempt on which RecvMsg and Header may be called without asking; 0: none
}
