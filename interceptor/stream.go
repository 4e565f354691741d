// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind that may have more than one attempt. This file has the application's calls, stream_drive.go
// how they make attempts, stream_attempt.go one attempt, and stream_end.go how attempts and the call end.
//
// A call of the application that needs something of an attempt drives the call: it makes attempts, as a unary call does, until one has
// what is needed. One call drives at a time, and the others wait. What has failed while no call drives is found by the next one. So an
// attempt's clock runs only while the application waits. If no call comes within a second, a goroutine of ours reports the end.
//
//	running ───── commit ─────► committed ── first message ──► passed through
//	  ▲  │                        │    │                             │
//	  └──┼── cut, to be resumed ──┘    └──────────────┬──────────────┘
//	     └── the engine says Over ────────────────────┴──► over
//
// What it is made of: the request, which the application sends and later attempts are sent again; the drive, which is what a call of the
// application waits for; the beginning, until the engine starts; the outcome.
//
// Attempts of a stream with one request may run in parallel (races). A stream of many requests has one attempt at a time.
//
// What runs with the driver's lock, and what without, is said at the driver.
type stream struct {
	call
	driver driver

	desc   *grpc.StreamDesc
	open   grpc.Streamer
	codec  *messageCodec // of the attempts; nil: gRPC's own
	races  bool          // attempts may run in parallel
	resume resumption    // used by RecvMsg, and by what reports a cut that RecvMsg has found

	encoder encoder // used by SendMsg

	receives atomic.Pointer[streamAttempt] // RecvMsg passes through to it, if set
	sends    atomic.Pointer[streamAttempt] // SendMsg passes through to it, if set

	// The driver's lock guards all below.
	request   request
	drive     drive
	beginning beginning
	outcome   streamOutcome

	idleSince  time.Duration  // when the application last stopped waiting
	reporting  int            // goroutines that report the end of an attempt, and don't drive
	lastFailed *streamAttempt // the last one for which a server has returned an error
	unwatch    func() bool    // stops watching the call's context; may be nil
}

// beginning is what the engine is told of the first attempt when it starts.
type beginning struct {
	timing attempts.Timing
	commit decision.Commit // why the call is committed to it; CommitNone: it isn't
}

// drive is what a call of the application waits for, and what it has got. driver.waiting says whether there is one.
type drive struct {
	want    want
	message any            // RecvMsg receives into it
	before  keptReply      // message, before the first attempt received into it
	used    bool           // an attempt has received into message
	replies messageType    // of messages for goroutines of ours
	won     *streamAttempt // it has what the call waits for
}

// want is what of an attempt a call of the application needs.
type want uint8

const (
	wantOpened  want = iota // NewStream, Context, and SendMsg of a message that can't be kept
	wantEnd                 // SendMsg, whose attempt takes no more messages: how has it ended?
	wantHeaders             // Header
	wantMessage             // RecvMsg
)

func (r *Retrier) stream(retries grpcRetries) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (made grpc.ClientStream, err error) {
		var c call
		c.retrier, c.cc, c.method, c.grpcRetries = r, cc, method, retries
		options := newAttemptOptions()
		c.readRequest(opts, options)
		if c.flags&disabled != 0 {
			return open(ctx, desc, cc, method, opts...)
		}
		c.announce(ctx)
		c.prepareContext()
		made, err = c.openStream(desc, open, options)
		if err == nil && r.repeats != nil {
			opened := c
			made = r.repeats.Stream(opened.second, desc, open, made)
		}
		return made, err
	}
}

// openStream opens the stream of a call. What its kind needs takes a copy of the call.
func (c *call) openStream(desc *grpc.StreamDesc, open grpc.Streamer, options *attemptOptions) (grpc.ClientStream, error) {
	switch {
	case !c.single():
		return openRetried(*c, desc, open, options)
	case c.listens():
		return openSingle(*c, desc, open, options)
	default:
		return openPassed(*c, desc, open)
	}
}

// single reports whether a call has at most one attempt.
func (c *call) single() bool {
	return c.options.maxAttempts < 2 || c.entry.mode == policy.ModeOff
}

// openRetried opens a stream that may have several attempts.
func openRetried(c call, desc *grpc.StreamDesc, open grpc.Streamer, options *attemptOptions) (grpc.ClientStream, error) {
	s := &stream{call: c, desc: desc, open: open}
	s.driver.init(&s.call, s)
	grpcsCodec := s.usesGRPCsCodec()
	if desc.ClientStreams {
		s.inSequence = true
	} else {
		s.inSequence = s.retrier.newReply == nil && !grpcsCodec
		s.warnInSequence()
	}
	enforced := s.entry.mode == policy.ModeEnforce
	s.races = s.entry.policy.Parallel() && !s.inSequence && enforced
	if !grpcsCodec && enforced {
		s.useMessageCodec()
	}
	s.resume = resumptionOf(desc, s.options.caller)
	s.request.buffer.limit = replayLimit(s.options.caller)
	s.request.buffer.total, s.request.buffer.sum = &s.retrier.replayed, s.retrier.maxReplayed
	return s.begin(options)
}

// useMessageCodec makes the attempts use a messageCodec.
func (s *stream) useMessageCodec() {
	o := &s.options
	s.codec = newMessageCodec(o.caller)
	if s.codec != nil { // else gRPC reports that there is none
		o.shared = append(o.shared, grpc.ForceCodecV2(s.codec))
	}
}

// begin makes the first attempt. If attempts race, a goroutine does, and NewStream doesn't wait for it.
func (s *stream) begin(options *attemptOptions) (grpc.ClientStream, error) {
	returned := false
	defer func() {
		if !returned {
			s.driver.unwind(nil)
		}
	}()
	over := false
	s.locked(func() {
		s.prepareFirst(options)
		over = s.isOver()
	})
	returned = true
	switch {
	case over:
		return nil, s.result(false)
	case s.races:
		return s, nil
	}
	if _, err := s.await(wantOpened, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// prepareFirst prepares the first attempt. The engine starts before it only if it may be asked something. The lock must be held.
func (s *stream) prepareFirst(options *attemptOptions) {
	s.idleSince = s.start
	s.beginning.timing = attempts.NewTiming(s.start, true)
	if s.entry.asks || s.entry.policy.Watched() || s.resume.next != nil { // a policy whose attempts race is watched
		step := s.startEngine(true, attempts.Now{At: s.start}) // until CloseSend, the application takes its time
		if step.Over {
			s.concluded()
			return
		}
	}
	t := s.newStreamAttempt(s.firstAttempt(options, s.start))
	s.driver.attempts = append(s.driver.attempts, &t.attempt)
	if s.ctx.Done() != nil {
		s.unwatch = context.AfterFunc(s.ctx, s.contextOver)
	}
	if s.races {
		s.giveToGoroutine(t)
	}
}

func (s *stream) locked(f func())     { s.driver.locked(f) }
func (s *stream) lockedOnly(f func()) { s.driver.lockedOnly(f) }

// RecvMsg receives a message. The first one commits the call to its attempt. Until then, failed attempts may be retried without the
// application noticing.
func (s *stream) RecvMsg(m any) error {
	if t := s.receives.Load(); t != nil {
		err := s.passReceive(t, m)
		if err == nil {
			return nil
		}
		return s.passedEnd(t, err)
	}
	t, err := s.await(wantMessage, m)
	if t == nil {
		return s.receiveAfterEnd(m, err)
	}
	if t.ownReply {
		copyReply(m, t.reply)
		t.ownReply, t.reply = false, nil
	}
	s.resume.delivered(m)
	return nil
}

// SendMsg sends a message, and keeps it as long as another attempt may need it. An attempt that has everything before it gets the
// application's own message; later ones get copies.
func (s *stream) SendMsg(m any) error {
	if t := s.sends.Load(); t != nil {
		err := s.passSend(t, m)
		if err == nil {
			return nil
		}
		return s.sent(t, err)
	}
	var e encoded
	why := s.encode(m, &e) // before an inner interceptor can change m
	var t *streamAttempt
	replaced, refused, over := false, false, false
	s.lockedOnly(func() {
		over = s.isOver()
		replaced = s.request.state == requestReplaced
		if over || replaced {
			return
		}
		why = s.keep(&e, why)
		if why == decision.CommitNone {
			t = s.giveNewest()
			refused = t == nil && s.sender() == senderEnds
		}
	})
	switch {
	case over:
		return s.sentAfterEnd()
	case replaced:
		return nil // too late
	case why != decision.CommitNone:
		return s.sendUnkept(m, &e, why)
	case refused:
		return s.findEnd(nil) // it has ended while it was sent what was kept
	case t == nil:
		return nil // what is kept is sent to the attempt that lacks it
	}
	return s.sent(t, s.sendWaiting(t, m))
}

// encode encodes a message that SendMsg must keep. If it can't be kept, encode returns the cause that commits the call.
func (s *stream) encode(m any, e *encoded) decision.Commit {
	size, why := s.encoder.measure(m)
	switch {
	case why != decision.CommitNone:
		return why
	case size > chunkSize && !s.fits(size): // the encoding of a smaller one costs little
		return decision.CommitBufferFull
	default:
		return s.encoder.encodeMeasured(size, e)
	}
}

// fits reports whether the replay buffer has a place for a message now.
func (s *stream) fits(size int) bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return s.request.buffer.fits(size)
}

// keep keeps a message for later attempts, unless why says that it can't be kept. It returns why it isn't. The lock must be held.
func (s *stream) keep(e *encoded, why decision.Commit) decision.Commit {
	switch _, committed := s.commitment(); {
	case committed != decision.CommitNone:
		return committed
	case s.request.closed():
		return decision.CommitUnsendable // as gRPC says
	case why != decision.CommitNone:
		return why
	case !s.request.keep(e):
		return decision.CommitBufferFull
	default:
		return decision.CommitNone
	}
}

// giveNewest returns the running attempt, if it has everything that was kept before the newest message: the application then sends it
// its own message. The lock must be held.
func (s *stream) giveNewest() *streamAttempt {
	t := s.running()
	if t == nil || t.stream == nil || t.sending != sendsFreely || t.given != s.request.messages-1 {
		return nil
	}
	t.given = s.request.messages
	if !s.desc.ClientStreams {
		s.requested(t)
	}
	return t
}

// sendWaiting sends a message. If an attempt may be slow, its clock runs: flow control may block the application.
func (s *stream) sendWaiting(t *streamAttempt, m any) error {
	if s.entry.policy.Watched() {
		s.locked(s.beginWait)
		defer s.lockedOnly(s.endWait)
	}
	return s.passSend(t, m)
}

// beginWait starts the clock of the attempts, unless another call of the application drives. The lock must be held.
func (s *stream) beginWait() {
	if s.driver.waiting.drives() || s.isOver() {
		return
	}
	now := s.engineNow()
	step := s.reportPause(now)
	s.driver.waiting = senderWaits
	s.driver.schedule(&step, now.At)
}

// endWait stops it. The lock must be held.
func (s *stream) endWait() {
	if s.driver.waiting.drives() {
		return
	}
	s.driver.waiting = nobodyWaits
	s.driver.stopTimer()
	s.idleSince = clock.Now()
}

// sendUnkept sends a message that can't be kept. It commits the call to the attempt that takes it, which must have everything before
// it.
func (s *stream) sendUnkept(m any, e *encoded, why decision.Commit) error {
	if s.codec != nil {
		s.codec.encodeOnce(m) // another attempt may have to send it
		defer s.codec.encodeOnce(nil)
	}
	for tries := 0; ; tries++ {
		t, over := s.awaitSender()
		switch {
		case over:
			return s.sentAfterEnd()
		case t == nil:
			return s.eof()
		case s.isReplaced():
			return nil // too late: the attempt has the request for the rest
		}
		if tries > 0 && e.of != nil { // an inner interceptor may have changed the application's own
			if again, err := e.decode(); err == nil {
				m = again
			}
		}
		err := s.sendWaiting(t, m)
		if err == nil {
			if s.commitTo(t, why) {
				return nil
			}
			continue
		}
		if result := s.sent(t, err); result != nil || s.isCommitted(t) {
			return result
		}
	}
}

// isReplaced reports whether a request for the rest has taken the place of what the application sends.
func (s *stream) isReplaced() bool {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return s.request.state == requestReplaced
}

// commitTo commits the call to an attempt that has taken a message which can't be kept. It returns false if another attempt follows, since
// this one has ended.
func (s *stream) commitTo(t *streamAttempt, why decision.Commit) (ok bool) {
	s.locked(func() {
		if t.finished != nil && s.committed() != t {
			t.sending = sendsNoMore // an inner interceptor hides the end
			return
		}
		ok = s.commit(t, why)
		if ok && !s.desc.ClientStreams {
			s.requested(t)
		}
	})
	return ok
}

// awaitSender waits for an attempt that has everything that was kept, and returns it. It returns nil if the call is committed to an
// attempt that takes no more messages.
func (s *stream) awaitSender() (t *streamAttempt, over bool) {
	for {
		sender, is := s.awaitIdleSender()
		switch is {
		case senderOver:
			return nil, true
		case senderRefuses:
			return nil, false
		case senderReady:
			return sender, false
		case senderEnds:
			_, _ = s.await(wantEnd, nil)
		default:
			_, _ = s.await(wantOpened, nil)
		}
	}
}

// awaitIdleSender waits while the attempt to which a message can be sent is busy, and returns it and its state.
func (s *stream) awaitIdleSender() (*streamAttempt, senderIs) {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	for {
		is := s.sender()
		if is != senderBusy {
			return s.running(), is
		}
		s.driver.changed.Wait()
	}
}

// senderIs is the state of the attempt to which a message can be sent.
type senderIs uint8

const (
	senderMissing senderIs = iota // no attempt is open
	senderBusy                    // it is sent what was kept, or another call finds out how it has ended
	senderReady                   // it has everything that was kept
	senderEnds                    // it takes no more messages
	senderRefuses                 // the same, and the call is committed to it
	senderOver                    // the call is over
)

// sender returns the state of the attempt to which a message can be sent. The lock must be held.
func (s *stream) sender() senderIs {
	t := s.running()
	switch {
	case s.isOver():
		return senderOver
	case t != nil && t.stream != nil && t.sending == sendsFreely && t.given >= s.request.messages && !s.cancelled(t):
		return senderReady
	case t != nil && t == s.committed() && t.sending == sendsNoMore:
		return senderRefuses
	case s.driver.waiting.drives(), t != nil && t.sending == sendsKept:
		return senderBusy
	case t != nil && t.stream != nil && t.maker == makerGoroutine && s.lacks(t): // which is about to send it what was kept
		return senderBusy
	case t != nil && t.stream != nil && t.sending != sendsFreely:
		return senderEnds
	default:
		return senderMissing
	}
}

// sent returns the result of SendMsg, for which attempt t has returned err. After io.EOF the attempt takes no more messages: unless
// another call is about to find out how it has ended, SendMsg does.
func (s *stream) sent(t *streamAttempt, err error) error {
	if err == nil {
		return nil
	}
	var reported, committed, found bool
	s.lockedOnly(func() {
		reported = t.over()
		committed = s.committed() == t
		found = s.driver.waiting.drives() || t.maker == makerGoroutine
		s.sendFailed(t, err)
	})
	switch {
	case reported && s.endsWith(t):
		return s.sentAfterEnd()
	case reported:
		return nil // the next attempt gets it
	case err != io.EOF:
		return s.unsendable(t, err, committed, found)
	case committed:
		return s.eof()
	case found:
		return nil // it is kept
	default:
		return s.findEnd(nil)
	}
}

// unsendable returns the result of SendMsg for a message that attempt t can't send, for the reason err: no other attempt could. found says
// that another call is about to find out how t ends.
func (s *stream) unsendable(t *streamAttempt, err error, committed, found bool) error {
	if committed {
		if found {
			t.endContext() // it may be receiving, and then ends t with this error
		}
		s.reportFound(t, err)
		return amended(s.result(false), err)
	}
	s.locked(func() { s.commit(t, decision.CommitUnsendable) })
	t.endContext() // whoever receives from it ends it with this error
	return s.findEnd(err)
}

// findEnd is SendMsg when the attempt that runs takes no more messages: it finds out how that has ended. failure is why a message could
// not be sent; nil: the attempt has ended.
func (s *stream) findEnd(failure error) error {
	on, final := s.await(wantEnd, nil)
	switch {
	case on != nil && s.refuses(on):
		return s.eof() // it has headers, so that its end is the application's
	case on != nil:
		return nil
	case errors.Is(final, errFollowed):
		s.follow()
		return nil
	case failure != nil && final != nil:
		return final
	default:
		return s.sentAfterEnd()
	}
}

// eof returns what SendMsg returns if the attempt takes no more messages. As gRPC, it tells only a sender of many messages.
func (s *stream) eof() error {
	if s.desc.ClientStreams {
		return io.EOF
	}
	return nil
}

// sentAfterEnd is SendMsg when the call is over: RecvMsg returns how it has ended. It doesn't wait for the caller's OnFinish, which may
// wait for the sender.
func (s *stream) sentAfterEnd() error {
	_ = s.result(true)
	return s.eof()
}

// CloseSend closes the application's side of this attempt and of later ones. It does not wait for a replay, which may itself wait for
// the application to receive.
func (s *stream) CloseSend() error {
	var on *streamAttempt
	s.lockedOnly(func() {
		t := s.running()
		if s.request.closed() || s.isOver() {
			return
		}
		s.request.state = requestClosed
		if t == nil {
			return
		}
		if t.stream != nil && t.sending == sendsFreely && t.given >= s.request.messages {
			t.closed = true
			on = t
		}
		if on != nil || t.sending == sendsNoMore { // its server gets no more than it has
			s.requested(t)
		}
	})
	if on == nil {
		return nil
	}
	return s.passClose(on)
}

// Header returns the headers of the attempt, and commits the call to it. They are nil if the call ends without.
func (s *stream) Header() (metadata.MD, error) {
	t := s.besideReceiver()
	if t == nil {
		t, _ = s.await(wantHeaders, nil)
	}
	var headers metadata.MD
	s.lockedOnly(func() {
		if t == nil {
			t = s.outcome.shown
		}
		if t != nil {
			headers = t.headers
		}
	})
	if t == nil || t.stream == nil || headers != nil {
		return headers, nil // nil as in gRPC: RecvMsg returns the error
	}
	return t.stream.Header()
}

// besideReceiver returns the attempt that Header may ask directly, as gRPC allows it next to RecvMsg. It returns nil if Header must make
// attempts.
func (s *stream) besideReceiver() *streamAttempt {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	t := s.committed()
	for (t == nil || t.over()) && s.driver.waiting.drives() && !s.isOver() {
		s.driver.changed.Wait()
		t = s.committed()
	}
	if t == nil || t.over() || t.stream == nil || !s.driver.waiting.drives() && s.receives.Load() == nil {
		return nil
	}
	return t
}

// Context commits the call, as in gRPC, and returns the context of the attempt.
func (s *stream) Context() context.Context {
	for {
		var t *streamAttempt
		over, driven := false, false
		s.locked(func() {
			over, driven = s.isOver(), s.driver.waiting.drives()
			if over {
				t = s.outcome.shown
				return
			}
			t = s.opened()
			if t != nil && !s.commit(t, decision.CommitContext) {
				t = nil // it has ended meanwhile
			}
		})
		switch {
		case t != nil && t.stream != nil:
			return t.stream.Context()
		case over:
			return s.ctx
		case driven:
			s.awaitOpened()
		default:
			_, _ = s.await(wantOpened, nil)
		}
	}
}

// awaitOpened waits until an attempt is open, or no call drives.
func (s *stream) awaitOpened() {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	for s.driver.waiting.drives() && !s.isOver() && s.opened() == nil {
		s.driver.changed.Wait()
	}
}

// Trailer returns the trailer of the call's response; nil before the end.
func (s *stream) Trailer() metadata.MD {
	var t *streamAttempt
	s.lockedOnly(func() { t = s.outcome.shown })
	if t == nil || t.stream == nil {
		return nil
	}
	return t.stream.Trailer()
}

// passReceive calls gRPC's RecvMsg for the application.
func (s *stream) passReceive(t *streamAttempt, m any) error {
	returned := false
	defer func() { s.passed(t, returned) }()
	err := t.stream.RecvMsg(m)
	returned = true
	return err
}

// passSend calls gRPC's SendMsg for the application.
func (s *stream) passSend(t *streamAttempt, m any) error {
	returned := false
	defer func() { s.passed(t, returned) }()
	err := t.stream.SendMsg(m)
	returned = true
	return err
}

// passClose calls gRPC's CloseSend for the application.
func (s *stream) passClose(t *streamAttempt) error {
	returned := false
	defer func() { s.passed(t, returned) }()
	err := t.stream.CloseSend()
	returned = true
	return err
}

// passed ends a call of gRPC. If it has not returned, an inner interceptor has panicked, or called Goexit: the call is over.
func (s *stream) passed(t *streamAttempt, returned bool) {
	if !returned {
		s.driver.unwind(&t.attempt)
	}
}
