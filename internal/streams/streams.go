// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package streams is a retried stream as a pure state machine: who sends to each attempt, who receives from it,
// who reports its end, and what each call of the application does next.
//
// A [Call] has no lock, goroutine, timer or connection. It drives the engine of package attempts, which alone
// decides which attempts run and whose answer counts. Each party (a call of the application, the goroutine of an
// attempt) is a [Task]. Its driver asks what to do, does it without the lock, and tells the result:
//
//	lock; call.Enter(now, gone)
//	for {
//		order := call.Ask(&task)
//		if order.Do == streams.Wait { call.Exit, act; wait for a change; call.Enter; continue }
//		if order.Do == streams.Return { call.Exit, act; unlock; return }
//		call.Exit, act; unlock; result := what order.Do says; lock; call.Enter
//		if end := call.Done(&task, result); end.Attempt != 0 { unlock; report(end); lock }
//	}
package streams

import (
	"time"

	"github.com/stagger-go/stagger/internal/decision"
)

// Settings are what the driver knows of a call. They change once, if the policy comes late.
type Settings struct {
	ClientStreams bool // the application sends any number of messages
	ServerStreams bool // it receives any number of messages
	// Races lets attempts run beside each other: the policy asks for that, the application sends one message, and
	// a message of the kind that it receives can be made. The engine is told Alone otherwise.
	Races   bool
	Single  bool // no other attempt can follow the first
	Resumes bool // a stream that is cut may be resumed, so the application never receives without asking
}

// Kind is what a [Task] wants.
type Kind uint8

// The kinds of tasks: calls of the application, and an attempt's own goroutine.
const (
	NewStream Kind = iota + 1 // returns when the stream can be used
	SendMsg
	CloseSend
	RecvMsg
	Header
	Context
	Goroutine // opens Attempt, if it is not open, and does for it what the application does not do by itself
)

// Task is one call of the application while it lasts, or the goroutine of an attempt while that runs. The driver
// fills in the exported fields before it first asks, and does not change them.
type Task struct {
	Kind    Kind
	Attempt int             // Goroutine: whose it is. Also of a call that went to an attempt without asking (Acts.Sends, Acts.Receives)
	Kept    bool            // SendMsg: the message was added to the replay buffer, as [Call.Keeps] allows
	Commit  decision.Commit // SendMsg of a message that could not be kept: why
	Makes   bool            // RecvMsg: a message like the one that it receives into can be made

	begun   bool // it has asked before
	over    bool // it is to return Returns
	returns Returns
	did     Do       // the order that it does; Wait: none
	on      *attempt // on which
	beside  bool     // GetHeader: beside the receiver, without its role
	index   int      // SendMsg: the number of the message in the buffer, counted from 0
	sent    bool     // SendMsg: the message was sent before
	reply   *attempt // RecvMsg: the one reply is that of this attempt, if that is the answer
}

// Do is what a task does next.
type Do uint8

// All but Wait and Return are a call of gRPC, on the attempt that the order names.
const (
	Wait      Do = iota // ask again after a change
	Return              // the task is over
	Open                // open the attempt
	Send                // call SendMsg
	Close               // call CloseSend
	GetHeader           // call Header
	Receive             // call RecvMsg
)

// Returns is what a call of the application returns.
type Returns uint8

// What a call returns.
const (
	Nil     Returns = iota // no error. Header and Context: what Order.Attempt has; 0: nothing, as the call has no attempt to show
	EOF                    // io.EOF
	Final                  // how the call has ended; io.EOF after success
	Own                    // the error that the task's last call has returned
	Brought                // no error, and a copy of the message that the goroutine of Order.Attempt has received
)

// Order is what a task does next.
type Order struct {
	Do      Do
	Attempt int
	Message int     // Send by a Goroutine: a copy of this message of the replay buffer, counted from 0
	Again   bool    // Send by SendMsg: the message was sent before, so a copy of it is sent
	Status  bool    // GetHeader: without headers, receive what is left, the status. Nothing else receives meanwhile
	Returns Returns // with Return
}

// Result is what has come of an order, or of a call that needed none.
type Result struct {
	Err        error // that gRPC has returned
	Headers    bool  // GetHeader: there are headers; the driver has stored them with the attempt
	Panicked   bool  // an inner interceptor has panicked or called Goexit
	Unsendable bool  // Send by a Goroutine: no copy could be made, for Err. Nothing was sent
}

// End is the end of an attempt that its receiver has to report, with [Call.Ended], and nobody else. The zero End
// is none.
type End struct {
	Attempt  int
	Err      error // as gRPC or an inner interceptor has said; nil: success
	GivenUp  bool  // it was cancelled, and nothing is known of its end
	Panicked bool
	Received bool // RecvMsg has returned Err, after messages of this attempt: it may be a cut that Resume can mend
}

// Acts are what the driver does before it gives up the lock. Slices are valid until the next Enter.
type Acts struct {
	Cancel []int // the contexts of these attempts
	Go     []int // start a goroutine for each of these attempts, that does its Task; what is not known yet is to be opened
	Report []End // report each, in a goroutine of its own
	// Wake is when to call [Call.Wake], in place of any time given before, on the engine's clock; attempts.Never: not at all. A wake that comes too early
	// changes nothing, so a timer that is set for an earlier time may stay as it is.
	Wake     time.Duration
	Watch    bool // wake also when the channel's state changes
	Idle     bool // nothing runs while the call waits for Wake: the driver watches context, connection and mode
	Over     bool // the answer is known: fix it, and let callbacks run without the lock. True once.
	Moved    bool // those who wait are to ask again
	Released bool // the replay buffer is not needed any more
	Overdue  int  // call Overdue for this attempt in a second, if the call is not over then; 0: none
	Sends    int  // the attempt that SendMsg and CloseSend may call without asking; 0: none
	Receives int  // the attempt that RecvMsg and Header may call without asking; 0: none
}
