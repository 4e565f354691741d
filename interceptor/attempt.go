// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/stagger-go/stagger/policy"
)

// attempt is one attempt of a call. The engine keeps its own state of it.
type attempt struct {
	*attemptOptions

	number  int           // 1 is the first
	hedge   bool          // it was sent in parallel with others
	began   time.Duration // on the budgets' clock
	ctx     context.Context
	cancel  context.CancelFunc // of ctx; nil if ctx is the call's
	options []grpc.CallOption  // passed to gRPC
	took    time.Duration      // until it ended
	slow    bool               // it took longer than its own timeout; known when it has ended
	expired bool               // its context was over when it ended
	report  report             // of gRPC, if that had ended the attempt when it returned

	ownReply bool // reply is not the caller's
	reply    any  // nil until it is made

	ofStream *streamAttempt // the rest of a stream's attempt; nil for unary ones
}

// endContext ends the attempt's context, if it has one of its own.
func (a *attempt) endContext() {
	if a.cancel != nil {
		a.cancel()
	}
}

// firstAttempt returns the first attempt of the call. passed are its options as gRPC gets them.
func (c *call) firstAttempt(options *attemptOptions, passed []grpc.CallOption) attempt {
	return attempt{attemptOptions: options, number: 1, began: c.start, ctx: c.ctx, options: passed}
}

// laterAttempt returns attempt n of the call, which the engine sends.
func (c *call) laterAttempt(n int, at time.Duration) *attempt {
	made := new(struct {
		attempt
		own attemptOptions
	})
	options, hedge := &made.own, c.engine.Hedge(n)
	options.init()
	if c.entry.mode == policy.ModeEnforce {
		options.retrier = c.retrier
	}
	made.attempt = attempt{
		attemptOptions: options,
		number:         n,
		hedge:          hedge,
		began:          at,
		ctx:            contextOfLater(c.ctx, n-1, hedge),
		options:        c.options.forAttempt(options),
	}
	return &made.attempt
}

// noteEnd records that the attempt has returned. It must be called before its context is cancelled.
func (a *attempt) noteEnd(at time.Duration) {
	a.took = at - a.began
	a.expired = a.ctx.Err() != nil
}

// report is what gRPC has reported of an attempt. It is zero if gRPC may still write to the attempt's targets, as after an error of an inner
// interceptor.
type report struct {
	ended   bool
	header  metadata.MD // nil if none arrived, or without headerTarget
	trailer metadata.MD // nil if there was no stream
	unsent  bool        // there was no stream
	peer    peer.Peer   // zero without callOptions.peer
}

// noteReport keeps what gRPC has reported of an attempt that has returned, if gRPC has ended it. It must be called before the
// attempt's context is cancelled: an inner interceptor may have left a second stream with the same options, to which gRPC then reports.
func (a *attempt) noteReport() {
	if !a.report.ended && a.ended() {
		a.report = report{ended: true, trailer: a.received(), unsent: a.untouched()}
		if a.asked != nil {
			a.report.header, a.report.peer = a.asked.header, a.asked.peer
		}
	}
}

var unreported report // of a call without a response

// hedgeKey marks the context of an attempt that is a hedge.
type hedgeKey struct{}

// AttemptFromContext returns the number of the attempt that a context belongs to: 1 for the first, and for every context outside a Retrier.
// It reads the header grpc-previous-rpc-attempts of the outgoing metadata, which every later attempt sends. Hedges and attempts of streams
// count as well. A hedge was sent in parallel with attempts that had not responded in time. Use it in code that runs once per attempt: inner
// interceptors, credentials (grpc.WithPerRPCCredentials), stats handlers.
func AttemptFromContext(ctx context.Context) (number int, hedge bool) {
	number = 1
	md, _ := metadata.FromOutgoingContext(ctx)
	for _, value := range md[attemptsHeader] {
		previous, err := strconv.Atoi(value)
		if err == nil && previous > 0 {
			number = previous + 1
		}
	}
	return number, ctx.Value(hedgeKey{}) != nil
}

// contextOfLater sets the number of previous attempts, and marks a hedge.
func contextOfLater(ctx context.Context, previous int, hedge bool) context.Context {
	_, given := metadata.FromOutgoingContext(ctx)
	if !given && previous < len(previousAttempts) {
		ctx = metadata.NewOutgoingContext(ctx, previousAttempts[previous])
	} else {
		ctx = metadata.AppendToOutgoingContext(ctx, attemptsHeader, strconv.Itoa(previous))
	}
	if hedge {
		ctx = context.WithValue(ctx, hedgeKey{}, true)
	}
	return ctx
}

// previousAttempts has the metadata of attempts without other metadata, by the number of previous attempts. It never changes.
var previousAttempts = [...]metadata.MD{1: {attemptsHeader: {"1"}}, 2: {attemptsHeader: {"2"}}, 3: {attemptsHeader: {"3"}}, 4: {attemptsHeader: {"4"}}}
