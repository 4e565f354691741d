// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/grpctext"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// engineState is the part of a call that begins with the engine: the engine itself, and what observers know of its decisions. A call that
// succeeds at once has none. If several goroutines use the call, its driver's lock guards it.
type engineState struct {
	engine     attempts.Call
	set        attempts.Settings
	off        bool          // the mode prevents further attempts
	decided    policy.Reason // the last decision that observers were told
	allowed    *Event        // the decision for the next extra attempt, for observers; nil: none
	connecting bool          // observers know that this attempt waits for a connection
	waitedFor  string        // Error.WaitedFor
	lastPeer   net.Addr      // the backend of the attempt that ended last; nil: none, or no observer asks for it
}

// deciding reports whether the engine has started.
func (c *call) deciding() bool { return c.engineState != nil }

// startEngine starts the engine before the first attempt, because it asks breaker or admission, or because the call is a stream. stream is
// nil for a unary call.
func (c *call) startEngine(stream *grpc.StreamDesc, now attempts.Now) attempts.Step {
	c.prepareEngine(new(engineState))
	c.set.ServerStreams = stream != nil && stream.ServerStreams
	switch {
	case stream == nil:
	case stream.ClientStreams:
		c.set.Kind = attempts.Upload
	default:
		c.set.Kind = attempts.Stream
	}
	if c.reasonGone(attempts.Now{Wall: time.Now(), Closed: closed(c.cc)}) == "" {
		c.setGates()
	}
	return c.engine.Start(&c.set, now)
}

// setGates makes the engine ask breaker and admission. A call that is over before its first attempt asks neither: no server will see it.
func (c *call) setGates() {
	if find := c.retrier.breaker; find != nil {
		if gate := find(c.target(), c.method); gate != nil {
			c.set.Breaker = &callGate{gate, c.ctx}
		}
	}
	c.set.Admission, c.set.Enforced = c.entry.gate, c.entry.mode == policy.ModeEnforce
}

// joinEngine starts the engine of a unary call whose first attempt has been sent, because neither breaker nor admission is asked.
func (c *call) joinEngine(state *engineState) {
	c.prepareEngine(state)
	c.engine.Join(&c.set, c.start)
}

// prepareEngine gives the call its engine, and the engine its settings.
func (c *call) prepareEngine(state *engineState) {
	c.engineState = state
	s := &c.set
	s.Policy = c.entry.policy
	s.MaxAttempts = c.options.maxAttempts
	s.Deadline, s.ByDefault = attempts.Never, c.flags&byDefaultTimeout != 0
	s.Budget, s.Slots = c.entry.budget, &c.entry.slots
	s.Safe, s.InRetry = c.isSafe(), inRetry(c.ctx)
	s.InSequence = c.inSequence
	s.AnnounceOnly = c.entry.mode == policy.ModeObserve
	if deadline, ok := c.ctx.Deadline(); ok {
		at := clock.Now()
		s.Deadline = at + min(time.Until(deadline), attempts.Never-max(at, 0))
	}
	s.Method = c.entry.responses
	s.Outage = c.outageWait()
}

// inboundShare is the part of an incoming call's remaining time that calls made in it wait for a connection.
// The rest is for the upstream caller, which may do without the result or ask another server. TestOutage_Inbound has the table behind it.
const inboundShare = 0.75

// outageWait returns how the call waits in an outage before an extra attempt.
func (c *call) outageWait() attempts.OutageWait {
	waits, says := c.saysWaitForReady()
	if says && !waits {
		return attempts.OutageWait{FailFast: true}
	}
	of := compiled.Of(c.entry.policy)
	is := attempts.OutageWait{
		Longest: c.entry.policy.MaxConnectionWait(), ByGRPC: says || of.WaitForReady != nil && *of.WaitForReady,
		FailFast: of.MaxConnectionWait != nil && *of.MaxConnectionWait == 0,
	}
	if c.set.Deadline < attempts.Never && inbound(c.ctx) != nil {
		is.Longest = min(is.Longest, time.Duration(inboundShare*float64(c.set.Deadline-c.start)))
	}
	if c.flags&optional != 0 {
		is.Longest, is.FailFast = 0, !says
	}
	return is
}

// saysWaitForReady returns the caller's WaitForReady option, if there is one. The last option applies.
func (c *call) saysWaitForReady() (waits, says bool) {
	for _, o := range slices.Backward(c.options.caller) {
		if o, ok := o.(grpc.FailFastCallOption); ok {
			return !o.FailFast, true
		}
	}
	return false, false
}

// now returns the time, a random number and the state of the connection, for the engine.
func (c *call) now() (now attempts.Now) {
	now.Wall = time.Now()
	now.At = clock.At(now.Wall)
	now.Chance = c.retrier.random()
	now.Off = c.forbids(c.entry.mode)
	c.retrier.outages.look(c.cc, &now)
	if hook := c.entry.rules.elsewhere; hook != nil && now.Down {
		if _, since := hook.LastPick(c.ctx); !since.IsZero() {
			now.Outage = max(now.Outage, now.At-clock.At(since))
		}
	}
	return now
}

// reportEnd reports the end of an attempt to the engine.
func (c *call) reportEnd(a *attempt, r attempts.Result, now attempts.Now) attempts.Step {
	c.stayOff(&now)
	if reason := c.stopReason(now); reason != "" {
		c.engine.Stop(reason, now) // a runs, so the call is not over yet
		if c.engine.Stopped() && reason != policy.ReasonClosed {
			c.waitedFor = c.waitsFor(a, r.Err, now)
		}
	}
	step := c.engine.Ended(a.number, r, now)
	a.slow = c.engine.EndedSlow()
	c.lastPeer = a.report.peer.Addr
	return step
}

const waitedForStream = "stream"

// shortestWait is how long an attempt must have taken to count as one that waited for a stream. The context of a faster one was probably
// over before it began: gRPC says the same of both.
const shortestWait = 10 * time.Millisecond

// waitNames are texts of Error.WaitedFor.
var waitNames = [...]string{attempts.WaitBackoff: "backoff", attempts.WaitConnection: "connection", attempts.WaitAnswer: "answer"}

// waitsFor returns what attempt a, which has ended with err and the call's context, waited for, as far as gRPC tells.
func (c *call) waitsFor(a *attempt, err error, now attempts.Now) string {
	switch {
	case !a.report.ended: // a function, or an inner interceptor
		return ""
	case !a.report.unsent:
		return "response"
	case now.Connecting, grpctext.AwaitedConnection(err): // gRPC doesn't say that it waits for a name's addresses
		return "connection"
	case a.took >= shortestWait && grpctext.AwaitedStream(err):
		return waitedForStream
	default:
		return ""
	}
}

// awaitNext reports the result of an attempt to the engine, and tells observers. Then it waits until the next attempt is to be sent, and
// returns its number and the time; 0: the call is over. Its call has one attempt at a time.
func (c *call) awaitNext(a *attempt, r attempts.Result, now attempts.Now) (next int, at time.Duration) {
	step := c.reportEnd(a, r, now)
	c.notifyAttempt(a, r.Err)
	c.notifyDecision(&step, a, r.Err)
	for step.Send == 0 && !c.endsStuck(now) {
		c.sleep(step.Wake, step.Watch)
		now = c.now()
		step = c.wake(now)
		c.notifyDecision(&step, nil, nil)
	}
	return step.Send, now.At
}

// sleep waits until the given time, the end of the call's context, the closing of its connection, or a change of mode or
// policies; and, if watch, until the connection leaves TRANSIENT_FAILURE.
func (c *call) sleep(until time.Duration, watch bool) {
	delay := until - clock.Now()
	if delay <= 0 {
		return // the contexts would cost more than the rest of an immediate retry
	}
	interruption := c.retrier.waits.interruption()
	if c.forbids(policy.ModeEnforce) != "" { // it may have changed since the engine's check
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, delay)
	defer cancel()
	defer context.AfterFunc(interruption, cancel)()
	if c.cc == nil {
		<-ctx.Done()
		return
	}
	for {
		state := c.cc.GetState()
		if state == connectivity.Shutdown || watch && state != connectivity.TransientFailure || !c.cc.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// wake makes the engine check the time again.
func (c *call) wake(now attempts.Now) attempts.Step {
	c.stayOff(&now)
	if reason := c.stopReason(now); reason != "" {
		if reason != policy.ReasonClosed {
			c.waitedFor = waitNames[c.engine.Waiting()]
		}
		return c.engine.Stop(reason, now)
	}
	c.connect(now)
	return c.engine.Wake(now)
}

// connect makes an idle channel connect. A slow attempt may have been sent over a connection that is gone, and while the channel is idle,
// no attempt is sent in parallel with it.
func (c *call) connect(now attempts.Now) {
	if now.Connecting && c.engine.Running() > 0 {
		c.cc.Connect()
	}
}

// endsStuck reports whether a call is over whose goroutines make no attempt. If the engine has one that runs all the same, that is our fault:
// its end would never be reported, and the call would wait for it for ever. So the call ends with an error.
func (c *call) endsStuck(now attempts.Now) (over bool) {
	if !c.engine.Over() && c.engine.Running() > 0 {
		c.engine.Abort(now)
		c.engine.End().Err = errStuck
	}
	return c.engine.Over()
}

var errStuck = status.Error(codes.Internal, "stagger: a fault of the library: an attempt's end was not found")

// abortUnlessOver releases everything that the call holds after a panic of an inner interceptor or a callback.
func (c *call) abortUnlessOver() {
	if !c.engine.Over() {
		c.engine.Abort(c.now())
	}
}

// closed reports whether the connection is closed.
func closed(cc *grpc.ClientConn) bool {
	return cc != nil && cc.GetState() == connectivity.Shutdown
}

// stayOff makes a mode that forbids further attempts apply to the rest of the call. The driver's lock must be held.
func (c *call) stayOff(now *attempts.Now) {
	if c.off && now.Off == "" {
		now.Off = policy.ReasonModeOff
	}
	c.off = c.off || now.Off == policy.ReasonModeOff
}

// reasonGone returns why the caller no longer waits for the response, or "". A deadline counts as soon as it
// has passed: gRPC and the server apply it by their own clocks.
func (c *call) reasonGone(now attempts.Now) policy.Reason {
	deadline, limited := c.ctx.Deadline()
	switch err := c.ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded), err == nil && limited && !now.Wall.Before(deadline):
		return policy.ReasonDeadlineExceeded
	case err != nil:
		return policy.ReasonCancelled
	case now.Closed:
		return policy.ReasonClosed
	default:
		return ""
	}
}

// In a chain, the client above cancels a call when its own timer fires. Its RST_STREAM may arrive before the timer of this process fires:
// at most cancelledEarlyBy, and at most a tenth of the call's time.
const (
	cancelledEarlyBy     = 5 * time.Millisecond
	cancelledEarlyByPart = 10
)

// stopReason returns the reason that observers and the caller get if the caller no longer waits, or "". It is that of reasonGone, with one
// exception. In a chain, the client above cancels this call just before their common deadline: that counts as the deadline. The status code
// stays gRPC's.
func (c *call) stopReason(now attempts.Now) policy.Reason {
	reason := c.reasonGone(now)
	deadline, limited := c.ctx.Deadline()
	if reason != policy.ReasonCancelled || !limited {
		return reason
	}
	left := deadline.Sub(now.Wall)
	if left <= min(cancelledEarlyBy, (now.At-c.start+left)/cancelledEarlyByPart) {
		return policy.ReasonDeadlineExceeded
	}
	return reason
}

// mode returns the call's current mode.
func (c *call) mode() policy.Mode {
	if c.deciding() && c.off {
		return policy.ModeOff
	}
	return c.entry.mode
}

// atOnce is the end of a call that has succeeded at once.
var atOnce = attempts.End{Reason: policy.ReasonSucceeded, ResultOf: 1, Attempts: 1}

func (c *call) end() *attempts.End {
	if !c.deciding() {
		return &atOnce
	}
	return c.engine.End()
}
