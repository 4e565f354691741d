// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/streams"
	"github.com/stagger-go/stagger/policy"
)

// stream is a call of any streaming kind that may have more than one attempt. Each call of the application, and the goroutine
// of each attempt, is a task of the machine (package streams), which decides the next step. The stream takes the step without
// the lock, reports the result to the machine, and carries out the machine's other requests.
//
// gRPC, inner interceptors, codecs and observers never run under the lock. The goroutine that reports the end of an attempt
// also notifies the observers, before it returns.
type stream struct {
	sends    atomic.Pointer[streamAttempt] // the application sends to it directly, if set
	receives atomic.Pointer[streamAttempt] // the application receives from it directly, if set
	keeps    atomic.Bool                   // sent messages are kept
	racing   bool                          // the type of replies comes from RecvMsg

	desc    *grpc.StreamDesc
	open    grpc.Streamer
	resume  resumption
	encoder encoder       // of the sender
	codec   *messageCodec // of the attempts; nil: gRPC's own

	mu       sync.Mutex // guards all below, and the engine
	changed  sync.Cond  // broadcasts each new version
	version  int        // changes when waiting tasks must ask again
	machine  streams.Call
	call     *call
	attempts []*streamAttempt // by number
	replay   replayBuffer
	replies  messageType   // of RecvMsg's message
	untold   atomic.Bool   // the call is over, and the caller's OnFinish must run
	begun    bool          // the engine has started
	unwatch  func() bool   // stops watching the call's context; may be nil
	timer    *time.Timer   // wakes the engine; nil until it is needed
	armed    time.Duration // the timer's time, or attempts.Never
	nap      *nap          // of the goroutine that waits while nothing runs
	overdue  *time.Timer
	caught   caught // of inner interceptors and callbacks
	events   eventQueue
	array    [2]*streamAttempt
}

func (r *Retrier) stream(with coexistence) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (made grpc.ClientStream, err error) {
		together := new(struct { // one allocation
			call
			streamAttempt
		})
		c, first := &together.call, &together.streamAttempt
		c.retrier, c.cc, c.method, c.with = r, cc, method, with
		first.attemptOptions = newAttemptOptions()
		c.readRequest(opts, first.attemptOptions)
		if c.flags&disabled != 0 {
			return open(ctx, desc, cc, method, opts...)
		}
		c.announce(ctx)
		if r.repeats != nil {
			defer func() {
				if err == nil {
					made = r.repeats.Stream(c.second, desc, open, made)
				}
			}()
		}
		if c.single() && !c.listens() {
			return c.openPassed(desc, open)
		}
		if c.single() {
			c.uploads = desc.ClientStreams
			c.engineState = new(engineState)
			s := &singleStream{desc: desc, call: c, attempt: &first.attempt}
			return s.openSingle(open)
		}
		s := &stream{desc: desc, open: open, call: c}
		grpcsCodec := c.usesGRPCsCodec()
		s.call.alone, s.call.uploads = r.newReply == nil && !grpcsCodec, desc.ClientStreams
		if !grpcsCodec && c.entry.mode == policy.ModeEnforce {
			s.useMessageCodec()
		}
		s.resume = resumptionOf(desc, opts)
		s.replay.limit, s.replay.total, s.replay.sum = replayLimit(opts), &r.replayed, r.maxReplayed
		s.changed.L, s.events.mu, s.armed, s.attempts = &s.mu, &s.mu, attempts.Never, append(s.array[:0], first)
		return s.begin()
	}
}

// useMessageCodec makes the attempts use a messageCodec.
func (s *stream) useMessageCodec() {
	o := &s.call.options
	if s.codec = newMessageCodec(o.caller); s.codec != nil { // else gRPC reports that there is none
		o.shared = append(o.shared, grpc.ForceCodecV2(s.codec))
	}
}

// begin makes the first attempt, and waits until the stream is usable. The engine starts before it only if it may be asked something.
func (s *stream) begin() (grpc.ClientStream, error) {
	var engine *attempts.Call
	if e := s.call.entry; e.asks || e.timed || s.resume.next != nil {
		s.call.engineState = new(engineState)
		engine = &s.call.engine
	}
	s.machine.Init(engine, s, s.machineSettings())
	t := task{Task: streams.Task{Kind: streams.NewStream}}
	s.enter(func() { s.start(); s.lends(&t) })
	if s.run(&t); t.order.Returns == streams.Final {
		return nil, t.order.Err
	}
	return s, nil
}

func (s *stream) start() {
	if s.machine.Joined() {
		now := s.call.now()
		s.call.prepareContext()
		step := s.call.startEngine(true, now) // until CloseSend, the application takes its time
		if !step.Over {
			s.prepare(s.attempts[0], step.Send, now.At)
		}
		s.machine.Start(now, step)
	} else {
		s.call.prepareContext()
		s.prepare(s.attempts[0], 1, s.call.start)
		s.machine.Begin(s.call.start)
	}
	if s.begun = true; !s.machine.Over() {
		s.watch()
	}
}

// join starts the engine with the attempt that was made, unless it has started. s.mu must be held.
func (s *stream) join() {
	if s.machine.Joined() {
		return
	}
	s.call.prepareEngine(true)
	s.machine.Join(&s.call.engine, &s.call.set)
}

// watch makes the stream notice the end of the call's context, if it has one. s.mu must be held.
func (s *stream) watch() {
	if s.call.ctx.Done() != nil {
		s.unwatch = context.AfterFunc(s.call.ctx, s.gone)
	}
}

// machineSettings returns the machine's settings.
func (s *stream) machineSettings() streams.Settings {
	s.racing = s.call.policy.Parallel() && !s.call.alone && !s.call.uploads && s.call.entry.mode == policy.ModeEnforce
	return streams.Settings{
		ClientStreams: s.desc.ClientStreams, ServerStreams: s.desc.ServerStreams,
		Races: s.racing, Resumes: s.resume.next != nil,
	}
}

// enter locks s.mu, and calls f, which uses the machine. Then it notifies observers, without the lock.
func (s *stream) enter(f func()) {
	s.mu.Lock()
	s.leave(func() {
		s.look()
		f()
	})
	s.notify()
}

// leave calls f, carries out the machine's requests, and unlocks s.mu. If a callback of the engine (budget, breaker) panics, the call
// is over, and leave returns false.
func (s *stream) leave(f func()) (returned bool) {
	defer s.mu.Unlock()
	defer func() {
		if !returned {
			s.abort(recover())
		}
	}()
	f()
	s.act(s.machine.Exit())
	return true
}

// look reads the clock once, and whether the call's context is over or its connection closed. The engine must have started, to be
// told of that. s.mu must be held.
func (s *stream) look() {
	if !s.begun || s.machine.Over() {
		return
	}
	s.join()
	wall := time.Now()
	now := attempts.Now{At: clock.At(wall), Wall: wall, Closed: closed(s.call.cc)}
	s.machine.Enter(now, s.call.reasonGone(now))
}

// lookAround also reads chance and the channel's state, before events on which the engine may send an attempt. s.mu must be held.
func (s *stream) lookAround() attempts.Now {
	now := s.call.now()
	if !s.machine.Over() { // else observers may be told of its mode
		s.call.stayOff(&now)
	}
	s.machine.Enter(now, s.call.reasonGone(now))
	return now
}

// abort ends the call after a callback or an inner interceptor has panicked with p. s.mu must be held.
func (s *stream) abort(p any) {
	s.caught.note(p)
	s.join()
	s.machine.Abort()
	s.act(s.machine.Exit())
}

// act carries out the machine's requests. s.mu must be held.
func (s *stream) act(a *streams.Acts) {
	for _, n := range a.Cancel {
		s.attempts[n-1].cancel()
	}
	for _, n := range a.Go {
		t := s.attempt(n)
		go s.run(&task{Task: streams.Task{Kind: streams.Goroutine, Attempt: n}, on: t})
	}
	for _, e := range a.Report {
		go s.reportEnd(e, nil)
	}
	if a.Released {
		s.replay.release()
	}
	if a.Over {
		s.finish()
	}
	s.schedule(a)
	direct(&s.sends, s.attempts, a.Sends)
	direct(&s.receives, s.attempts, a.Receives)
	if keeps := s.machine.Keeps(); keeps != s.keeps.Load() {
		s.keeps.Store(keeps)
	}
	if a.Moved {
		s.version++
		s.changed.Broadcast()
	}
	s.machine.Acted()
}

// direct stores attempt n in p, or nil for 0.
func direct(p *atomic.Pointer[streamAttempt], all []*streamAttempt, n int) {
	var t *streamAttempt
	if n > 0 {
		t = all[n-1]
	}
	if p.Load() != t {
		p.Store(t)
	}
}

// Conclude implements [streams.Caller]. It sets the response of a call that is over, and runs no user code. s.mu must be held.
func (s *stream) Conclude(attempt int) (tell bool, final error) {
	reported := &unreported
	if attempt > 0 {
		reported = s.attempts[attempt-1].reported()
	}
	tell = s.call.options.notify
	s.untold.Store(tell)
	if err := s.call.answer(reported); err != nil {
		return tell, err
	}
	return tell, io.EOF
}

// Amend implements [streams.Caller].
func (s *stream) Amend(err error) error { return amended(s.machine.Final(), err) }

// result returns the error of a call that is over.
func (s *stream) result() error {
	if final := s.machine.Final(); final != io.EOF {
		return final
	}
	return nil
}

// finish releases what only a running call needs, and queues the notification of its end. s.mu must be held.
func (s *stream) finish() {
	s.replay.close()
	if s.unwatch != nil {
		s.unwatch()
	}
	for _, timer := range []*time.Timer{s.timer, s.overdue} {
		if timer != nil {
			timer.Stop()
		}
	}
	if s.call.deciding() || s.call.cancel != nil || s.call.retrier.observers.Load().calls {
		s.events.push(notice{}) // the end
	}
}

// notify runs the caller's OnFinish, for which the application's call waits, and delivers queued events to observers, for which
// nothing waits. If one panics, the call is over, and the application's next call repeats the panic.
func (s *stream) notify() {
	if s.untold.Load() && s.untold.CompareAndSwap(true, false) {
		s.tellCaller()
	}
	s.events.tell(func(n notice) {
		s.outside(func() {
			if n.told != nil {
				s.call.deliverNotice(n)
				return
			}
			defer s.call.cancelTimeout() // after the observers, who may make calls
			s.call.notifyEnd(s.result())
		})
	})
}

func (s *stream) tellCaller() {
	s.mu.Lock()
	s.machine.Telling()
	s.mu.Unlock()
	defer s.enter(s.machine.Told)
	s.outside(func() { s.call.options.finished(s.result()) })
}

// RecvMsg receives a message. The first one commits the call to its attempt. Until then, failed attempts
// may be retried without the application noticing.
func (s *stream) RecvMsg(m any) (err error) {
	a := s.receives.Load()
	if a != nil {
		if err = s.direct(a, streams.RecvMsg, m); err == nil {
			return nil
		}
	}
	return s.receive(m, a, err)
}

// receive is RecvMsg as a task, which costs more. If direct isn't nil, it has returned err.
func (s *stream) receive(m any, direct *streamAttempt, err error) error {
	var t task
	if t.Kind, t.message, t.err = streams.RecvMsg, m, err; direct != nil {
		t.direct(direct, streams.Receive)
	} else if s.racing {
		t.replies = s.call.retrier.replyType(s.call.method, m)
		t.Makes = t.replies.makes()
	}
	s.run(&t)
	if t.order.Returns == streams.Brought {
		copyReply(m, t.reply)
	}
	if err = t.returns(); err == nil {
		s.resume.delivered(m)
	}
	return err
}

// direct calls SendMsg or RecvMsg of the attempt that the call is committed to.
func (s *stream) direct(a *streamAttempt, kind streams.Kind, m any) (err error) {
	returned := false
	defer func() {
		if !returned {
			s.panicked(&task{Task: streams.Task{Kind: kind, Attempt: a.number}}, recover())
		}
	}()
	if kind == streams.SendMsg {
		err = a.stream.SendMsg(m)
	} else {
		err = a.stream.RecvMsg(m)
	}
	returned = true
	return err
}

// direct makes t a call that has used a without asking, and has t.err to report.
func (t *task) direct(a *streamAttempt, do streams.Do) {
	t.order.Do, t.on, t.Attempt = do, a, a.number
	t.result, t.done = streams.Result{Err: t.err}, true
}

// returns is the error that the application gets.
func (t *task) returns() error {
	switch t.order.Returns {
	case streams.EOF:
		return io.EOF
	case streams.Final:
		return t.order.Err
	case streams.Own:
		return t.err
	default:
		return nil
	}
}

// SendMsg sends a message, and keeps it as long as another attempt may need it. The first attempt sends the message itself;
// later ones send copies.
func (s *stream) SendMsg(m any) (err error) {
	a := s.sends.Load()
	if a != nil {
		if err = s.direct(a, streams.SendMsg, m); err == nil || err == io.EOF {
			return err
		}
	}
	return s.send(m, a, err)
}

// send is SendMsg as a task, as receive is RecvMsg.
func (s *stream) send(m any, direct *streamAttempt, err error) error {
	var t task // a literal would be copied
	if t.Kind, t.message, t.err = streams.SendMsg, m, err; direct != nil {
		t.direct(direct, streams.Send)
	} else if s.keeps.Load() {
		t.Commit, t.encoded = s.encode(m, &t.bytes), true // before an inner interceptor can change m
		if t.Commit != decision.CommitNone && s.codec != nil {
			s.codec.encodeOnce(m) // another attempt may have to send it
			defer s.codec.encodeOnce(nil)
		}
	}
	s.run(&t)
	return t.returns()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replay.fits(size)
}

// CloseSend closes the application's side of this attempt and of later ones. It does not wait
// for a replay, which may itself wait for the application to receive.
func (s *stream) CloseSend() error {
	t := task{Task: streams.Task{Kind: streams.CloseSend}}
	s.run(&t)
	return t.returns()
}

// Header returns the headers of the attempt, and commits the call to it. They are nil if the attempt ended without.
func (s *stream) Header() (metadata.MD, error) {
	t := task{Task: streams.Task{Kind: streams.Header}}
	if a := s.receives.Load(); a != nil {
		t.order.Do, t.on, t.Attempt = streams.GetHeader, a, a.number
		if s.do(&t); t.result.Headers {
			return t.headers, nil
		}
	}
	s.run(&t)
	if t.on != nil && t.headers == nil && t.stream != nil && t.over {
		return t.stream.Header() // the application receives directly
	}
	if t.order.Returns == streams.Own {
		return nil, t.err
	}
	return t.headers, nil // nil as in gRPC: RecvMsg returns the error
}

// Context commits the call, as in gRPC, and returns the context of the attempt.
func (s *stream) Context() context.Context {
	t := task{Task: streams.Task{Kind: streams.Context}}
	s.run(&t)
	if t.on == nil || t.stream == nil {
		return t.context
	}
	return t.stream.Context()
}

// Trailer returns the trailer of the call's response; nil before the end.
func (s *stream) Trailer() metadata.MD {
	s.mu.Lock()
	var stream grpc.ClientStream
	if n := s.machine.Answer(); n > 0 && s.machine.Over() {
		stream = s.attempts[n-1].stream
	}
	s.mu.Unlock()
	if stream == nil {
		return nil
	}
	return stream.Trailer()
}

// task is a call of the application, or the goroutine of an attempt, with the data for its orders.
type task struct {
	streams.Task

	order   streams.Order // the last one
	on      *streamAttempt
	result  streams.Result // of the last order
	done    bool           // result is set
	lent    bool           // the order is the machine's loan
	end     streams.End    // to be reported by the task
	version int            // the stream's, when the task had to wait

	message any             // SendMsg sends it, RecvMsg receives into it
	before  keptReply       // RecvMsg's message, before the first receive
	bytes   encoded         // SendMsg's message, or the one that a goroutine sends
	encoded bool            // bytes are to be kept
	replies messageType     // the type of message, if attempts race
	context context.Context // the call's
	reply   any             // a goroutine's, to receive into or received
	headers metadata.MD
	stream  grpc.ClientStream // just opened

	err    error // of gRPC's last call
	over   bool  // the call is over
	caught caught
}

// run carries out the machine's orders until the task is over. A call that has used an attempt
// directly starts with the result of that. If an inner interceptor or a callback has panicked in one of our
// goroutines, run repeats the panic in a call of the application.
func (s *stream) run(t *task) {
	if !t.lent {
		s.lend(t)
	}
	for {
		s.notify()
		switch {
		case t.end.Attempt != 0:
			s.reportEnd(t.end, t)
			continue
		case t.order.Do == streams.Wait:
			s.wait(t.version)
		case t.order.Do == streams.Return:
			if t.Kind != streams.Goroutine {
				t.caught.rethrow()
			}
			return
		default:
			if s.do(t); t.result.Panicked {
				return
			}
		}
		s.turn(t)
	}
}

// lend takes the first order of a task: lent, if nothing need be decided, without clock, chance and the channel's state.
func (s *stream) lend(t *task) {
	s.mu.Lock()
	if t.encoded {
		s.keep(t)
	}
	if t.done || t.Kind == streams.Goroutine || !s.lends(t) {
		s.turnLocked(t)
		return
	}
	s.mu.Unlock()
}

// lends takes the first order of a call of the application, if the machine lends it. s.mu must be held.
func (s *stream) lends(t *task) bool {
	if t.lent = s.machine.Lend(&t.Task, &t.order, clock.Now); t.lent {
		t.on = s.attempts[t.order.Attempt-1]
	}
	return t.lent
}

// turn locks s.mu, as enter does, reports the result of the last order to the machine, and takes the next. The task is over if its
// lent order has succeeded, unless more is to be done.
func (s *stream) turn(t *task) {
	s.mu.Lock()
	if t.lent && t.err == nil {
		s.storeResult(t)
		if s.machine.GiveBack(&t.Task, clock.Now) {
			t.order.Do = streams.Return
			s.mu.Unlock()
			return
		}
	}
	s.turnLocked(t)
}

// turnLocked is turn for an order that wasn't lent, and unlocks s.mu.
func (s *stream) turnLocked(t *task) {
	t.lent = false
	if !s.leave(func() {
		if !s.atOnce(t) {
			s.look()
		}
		if s.next(t) {
			s.equip(t)
		}
		t.version = s.version
	}) {
		t.end, t.order, t.version = streams.End{}, streams.Order{Do: streams.Wait}, -1 // asks again immediately: nothing else may ever wake it
	}
}

// atOnce reports a result of RecvMsg about which nothing has to be decided to the machine, without the engine. It returns false for
// any other result. s.mu must be held.
func (s *stream) atOnce(t *task) bool {
	a := s.attempts[0]
	if !t.done || t.result.Panicked || s.machine.Joined() || a.ctx.Err() != nil || s.call.retrier.observers.Load().attempts {
		return false
	}
	at := clock.Now()
	a.done = a.ended()
	took, heard, ok := s.machine.AtOnce(&t.Task, t.err, at)
	t.done = !ok
	seen := !s.machine.Over() || !s.call.foreign(&a.attempt, false) // before its end, a stream doesn't tell who made it
	if heard && s.call.known != nil && seen {
		s.call.answeredAtOnce(at, took)
	}
	if s.machine.Over() {
		a.cancel()
		if seen {
			s.call.budget.Observe(clock.Time(s.call.start), budget.EventCallSucceeded)
		}
	}
	return ok
}

// next reports the result of the last order to the machine, and takes the next. It returns false if the task must first
// report the end of an attempt. s.mu must be held.
func (s *stream) next(t *task) bool {
	t.end = streams.End{}
	if t.replies.makes() {
		s.replies = t.replies
	}
	if t.done {
		s.storeResult(t)
		t.done = false
		if t.end = s.machine.Done(&t.Task, t.result); t.end.Attempt != 0 {
			return false
		}
	}
	t.order = s.machine.Ask(&t.Task)
	return true
}

// equip sets the task's data for its order. s.mu must be held.
func (s *stream) equip(t *task) {
	if t.on = nil; t.order.Attempt > 0 {
		t.on = s.attempts[t.order.Attempt-1]
	}
	switch {
	case t.order.Do == streams.Return:
		s.returns(t)
	case t.order.Do == streams.Send && t.Kind == streams.Goroutine:
		t.bytes = s.replay.message(t.order.Message)
	case t.order.Do == streams.Receive && t.Kind == streams.Goroutine:
		t.replies = s.replies
	}
}

// keep adds SendMsg's message to the replay buffer, once. If it can't be kept, t.Commit says why. s.mu must be held.
func (s *stream) keep(t *task) {
	if t.encoded = false; !s.machine.Keeps() {
		t.Commit = decision.CommitNone
		return
	}
	switch {
	case t.Commit != decision.CommitNone:
	case s.replay.appendMessage(&t.bytes):
		t.Kept = true
	default:
		t.Commit = decision.CommitBufferFull
	}
}

// storeResult stores the result of an order in its attempt. s.mu must be held.
func (s *stream) storeResult(t *task) {
	switch a := t.on; {
	case t.err != nil:
	case t.order.Do == streams.Open:
		a.stream = t.stream
	case t.order.Do == streams.GetHeader && t.headers != nil:
		a.headers = t.headers
	case t.order.Do == streams.Receive && t.Kind == streams.Goroutine:
		a.message = t.reply
	}
}

// returns sets the data that the task needs to return. s.mu must be held.
func (s *stream) returns(t *task) {
	t.context = s.call.ctx
	if s.machine.Over() {
		t.over, t.caught = true, s.caught
	}
	if a := t.on; a != nil {
		t.headers, t.stream = a.headers, a.stream
		if t.order.Returns == streams.Brought {
			t.reply, a.message = a.message, nil
		}
	}
}

// wait waits until the stream has another version.
func (s *stream) wait(version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.version == version {
		s.changed.Wait()
	}
}

// do makes the gRPC call of the task's order.
func (s *stream) do(t *task) {
	t.result, t.done = streams.Result{Panicked: true}, true
	returned := false
	defer func() {
		if !returned {
			s.panicked(t, recover())
		}
	}()
	a, r := t.on, &t.result
	switch t.order.Do {
	case streams.Open:
		t.stream, t.err = s.open(a.ctx, s.desc, s.call.cc, s.call.method, a.options...)
	case streams.Send:
		var m any
		if m, t.err = s.copyOf(t); t.err != nil {
			r.Unsendable = true
		} else {
			t.err = a.stream.SendMsg(m)
		}
	case streams.Close:
		t.err = a.stream.CloseSend()
	case streams.GetHeader:
		// gRPC's Header may return before gRPC knows the status, and then tells OnFinish of a success.
		if t.headers, t.err = a.stream.Header(); t.headers == nil && t.err == nil && (t.order.Status || !t.order.Beside && a.ended()) {
			t.err = a.stream.RecvMsg(new(emptypb.Empty)) // no message can arrive any more
		}
		r.Headers = t.headers != nil
	default:
		t.err = s.receiveInto(t)
	}
	r.Err, r.Panicked, returned = t.err, false, true
}

// copyOf returns the message to send: the application's the first time, then copies. Of a message that doesn't fit into the buffer, as
// of one that can't be copied, there is none.
func (s *stream) copyOf(t *task) (any, error) {
	if t.Kind == streams.Goroutine || t.order.Again && t.bytes.of != nil {
		return t.bytes.decode()
	}
	return t.message, nil
}

func (s *stream) receiveInto(t *task) error {
	if t.Kind == streams.Goroutine {
		t.reply = t.replies.newMessage()
		return t.on.stream.RecvMsg(t.reply)
	}
	switch {
	case t.before.reply != nil:
		t.before.restore()
	case s.receives.Load() == nil || s.resume.next != nil: // another attempt may follow
		t.before.keep(t.message, s.call.usesGRPCsCodec())
	}
	if !t.before.partly || s.codec == nil {
		return t.on.stream.RecvMsg(t.message)
	}
	s.codec.watch(t.message)
	err := t.on.stream.RecvMsg(t.message)
	t.on.spoiled = err != nil && s.codec.received.Load()
	return err
}

// panicked ends the call after an inner interceptor has panicked with p, or called Goexit, in the task. In a call
// of the application, the panic continues. From one of our goroutines, the application's next call repeats it.
func (s *stream) panicked(t *task, p any) {
	var end streams.End
	again := t.Task // a copy, so that t itself doesn't escape
	s.enter(func() {
		s.caught.note(p)
		end = s.machine.Done(&again, streams.Result{Panicked: true})
	})
	s.reportEnd(end, nil)
	if t.Kind != streams.Goroutine && p != nil {
		on := caught{happened: true, value: p}
		on.rethrow()
	}
}
