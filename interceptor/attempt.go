// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
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
	report  *report            // of gRPC, if that had ended the attempt when it returned; else nil

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

// report is what gRPC has reported of an attempt.
type report struct {
	header  metadata.MD // nil if none arrived, or without callOptions.header
	trailer metadata.MD // nil if there was no stream
	unsent  bool        // there was no stream; if an inner interceptor doesn't pass on the options, there is no report, and no proof
	peer    peer.Peer   // zero without callOptions.peer
}

// noteReport keeps what gRPC has reported of an attempt that has returned, if gRPC has ended it. It must be called before the
// attempt's context is cancelled: an inner interceptor may have left a second stream with the same options, to which gRPC then reports.
func (a *attempt) noteReport() {
	if a.report == nil && a.ended() {
		a.report = &report{header: a.header, trailer: a.received(), unsent: a.untouched(), peer: a.peer}
	}
}

// reported returns what gRPC has reported of an attempt that has returned. It is empty if gRPC may still write to it, as
// after an error of an inner interceptor.
func (a *attempt) reported() *report {
	if a.report == nil {
		return &unreported
	}
	return a.report
}

var unreported report

// callOptions are the options that the caller gave to a call. gRPC writes to the targets of Header, Trailer
// and Peer at the end of each attempt, and then calls OnFinish. So attempts never get the caller's targets:
// forAttempt gives each attempt other targets, and deliver fills the caller's once: a call has one response.
type callOptions struct {
	caller  []grpc.CallOption // as the caller gave them
	shared  []grpc.CallOption // the first attempt's own, then those for every attempt, unchanged; in its array, to save an allocation
	notify  bool              // the caller has targets or callbacks
	header  bool              // attempts report their headers, to the caller
	peer    bool              // attempts report their peers, to the caller or to observers
	opaque  bool              // one may have a target that can't be replaced
	foreign bool              // the caller gave options of go-grpc-middleware's retries
	codec   bool              // the caller chose a codec
	limited bool              // the caller gave limits, which the policy's may not exceed
	static  bool              // the caller gave grpc.StaticMethod

	maxAttempts int // the call's limit, which overrides its policy's
}

// forAttempt returns the options to pass to gRPC for an attempt. It is safe for concurrent use by parallel attempts.
func (o *callOptions) forAttempt(a *attemptOptions) []grpc.CallOption {
	opts := o.shared
	if &opts[0] != &a.array[0] {
		opts = append(a.array[:added], o.shared[added:]...)
	}
	if o.peer {
		opts = append(opts, grpc.Peer(&a.peer))
	}
	if o.header {
		opts = append(opts, grpc.Header(&a.header))
	}
	return slices.Clip(opts)
}

// asGiven returns the options to pass to gRPC for the only attempt of a call: the caller's, unchanged, and ours.
func (o *callOptions) asGiven(a *attemptOptions) []grpc.CallOption {
	opts := o.shared
	if o.peer {
		opts = append(opts, grpc.Peer(&a.peer))
	}
	return o.appendTargets(opts)
}

// unheard returns the options to pass to gRPC for the only attempt of a call, if nobody listens to it: the caller's, unchanged, the
// policy's limits, and the mark that finds a Retrier inside another one.
func (o *callOptions) unheard() []grpc.CallOption { return o.appendTargets(o.shared[listening:]) }

// appendTargets adds the caller's own targets and callbacks, which are not among the shared options.
func (o *callOptions) appendTargets(opts []grpc.CallOption) []grpc.CallOption {
	for _, option := range o.caller {
		_, callback := option.(grpc.OnFinishCallOption)
		if callback || targetOf(option) != nil {
			opts = append(opts, option)
		}
	}
	return slices.Clip(opts)
}

// deliver fills the caller's targets from the attempt whose response is the call's. It is called once, when no
// attempt runs any more.
func (o *callOptions) deliver(r *report) {
	if !o.notify {
		return
	}
	for _, option := range o.caller {
		switch target := targetOf(option).(type) {
		case grpc.HeaderCallOption:
			*target.HeaderAddr = r.header
		case grpc.TrailerCallOption:
			*target.TrailerAddr = r.trailer
		case grpc.PeerCallOption:
			*target.PeerAddr = r.peer
		}
	}
}

// finished calls the caller's OnFinish options, once.
func (o *callOptions) finished(err error) {
	if !o.notify {
		return
	}
	for _, option := range o.caller {
		if option, ok := option.(grpc.OnFinishCallOption); ok {
			option.OnFinish(err)
		}
	}
}

// targetOf returns the option for a header, trailer or peer that the caller has passed, or nil if option is another one. Options of
// users' types that embed such an option can't be replaced: see callOptions.opaque.
func targetOf(option grpc.CallOption) grpc.CallOption {
	switch option := option.(type) {
	case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
		return option
	case *grpc.HeaderCallOption:
		if option != nil { // gRPC panics
			return *option
		}
	case *grpc.TrailerCallOption:
		if option != nil {
			return *option
		}
	case *grpc.PeerCallOption:
		if option != nil {
			return *option
		}
	}
	return nil
}

// attemptOptions are the options of one attempt, with the values that gRPC writes to them. No other attempt ever gets their memory: an
// inner interceptor may leave gRPC running, and use the options later.
type attemptOptions struct {
	header  metadata.MD                   // nil if none arrived, or without callOptions.header
	trailer metadata.MD                   // noTrailer until gRPC writes here
	peer    peer.Peer                     // zero without callOptions.peer
	ends    atomic.Uint32                 // how often gRPC has ended the attempt, in any goroutine
	retrier *Retrier                      // notified if gRPC ends the attempt more than once; nil: nobody
	onEnd   endListener                   // called when gRPC has ended the attempt; may be nil
	waiter  atomic.Pointer[chan struct{}] // closed when gRPC has ended the attempt; nil without a waiter

	array [added + 4]grpc.CallOption // those that we add, then space for those of the call
}

// endListener is notified when gRPC has ended an attempt, in any goroutine.
type endListener interface{ onFinish(err error) }

// added is the number of options that we add to every attempt. The first of them, as many as listening, report its end to us.
const (
	added     = 3
	listening = 2
)

func newAttemptOptions() *attemptOptions {
	a := &attemptOptions{trailer: noTrailer}
	a.array[0] = grpc.Trailer(&a.trailer)
	a.array[1] = grpc.OnFinish(a.end)
	a.array[2] = insideOption{}
	return a
}

// end is gRPC's OnFinish. A second call means that an inner interceptor has repeated the attempt, or that the context was
// over when gRPC was to create the stream.
func (a *attemptOptions) end(err error) {
	if a.ends.Add(1) > 1 && a.retrier != nil && (err == nil || answered(err)) {
		a.retrier.warnOnce(&innerRetries, "", "")
	}
	if waiter := a.waiter.Load(); waiter != nil && a.waiter.CompareAndSwap(waiter, nil) {
		close(*waiter)
	}
	if a.onEnd != nil {
		a.onEnd.onFinish(err)
	}
}

// ended reports whether gRPC has ended the attempt, and won't write here again.
func (a *attemptOptions) ended() bool { return a.ends.Load() > 0 }

// longestEnd bounds the wait for gRPC's OnFinish at the end of an attempt. It expires only if an inner interceptor doesn't
// pass on its options.
const longestEnd = 100 * time.Millisecond

// timeToFind is how long the application has to find an end that an inner interceptor has found before it.
const timeToFind = time.Second

// awaitEnd waits until gRPC has ended an attempt whose call has returned: another goroutine of gRPC may still
// write trailer and peer. Only one goroutine may call it.
func (a *attemptOptions) awaitEnd() {
	if a.ended() {
		return
	}
	waiter := make(chan struct{})
	a.waiter.Store(&waiter)
	if a.ended() {
		return
	}
	timer := time.NewTimer(longestEnd)
	defer timer.Stop()
	select {
	case <-waiter:
	case <-timer.C:
	}
}

// noTrailer has a key that no server can send. gRPC replaces it, if only by an empty trailer, as soon as there was a stream.
var noTrailer = metadata.MD{":none": nil}

// untouched reports whether gRPC has reported no trailer: once it has ended the attempt, that proves that there was no stream.
func (a *attemptOptions) untouched() bool {
	_, untouched := a.trailer[":none"]
	return untouched
}

// received returns the trailer; nil if there was no stream.
func (a *attemptOptions) received() metadata.MD {
	if a.untouched() {
		return nil
	}
	return a.trailer
}

// promoted returns the gRPC option that a call option acts as. Only gRPC can declare the methods of a
// [grpc.CallOption], so every other type has them from an embedded field: a gRPC option, or an
// interface that holds one. It returns nil if the field cannot be read.
func promoted(option grpc.CallOption) grpc.CallOption {
	switch option.(type) {
	case grpc.StaticMethodCallOption, grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption,
		grpc.FailFastCallOption, grpc.PerRPCCredsCallOption:
		return option // fast path for the most usual
	case nil:
		return grpc.EmptyCallOption{} // gRPC panics
	}
	v := reflect.ValueOf(option)
	e := embeddingOf(v.Type())
	if e.pointer {
		v = v.Elem()
	}
	switch {
	case e.hidden:
		return nil
	case !v.IsValid():
		return grpc.EmptyCallOption{} // a nil pointer: gRPC panics
	case e.field != nil:
		inner, _ := reflect.TypeAssert[grpc.CallOption](v.FieldByIndex(e.field))
		return promoted(inner)
	case e.pointer:
		inner, _ := reflect.TypeAssert[grpc.CallOption](v)
		return inner
	}
	return option
}

// unwrapped returns the option that an option of a user's type holds in an embedded interface: it may be one of
// this package. It returns every other option itself.
func unwrapped(option grpc.CallOption) grpc.CallOption {
	switch option.(type) {
	case grpc.StaticMethodCallOption, grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption,
		grpc.FailFastCallOption, grpc.PerRPCCredsCallOption, policyOption, disableOption, idempotentOption, keyOption, nil:
		return option // fast path for the most usual
	}
	v := reflect.ValueOf(option)
	e := embeddingOf(v.Type())
	if e.pointer {
		v = v.Elem()
	}
	if e.field == nil || e.hidden || !v.IsValid() || v.Type().FieldByIndex(e.field).Type.Kind() != reflect.Interface {
		return option
	}
	if inner, _ := reflect.TypeAssert[grpc.CallOption](v.FieldByIndex(e.field)); inner != nil {
		return unwrapped(inner)
	}
	return option
}

// embedding describes the source of the methods of a call option type.
type embedding struct {
	pointer bool  // the options are pointers
	field   []int // the embedded one, as for [reflect.Value.FieldByIndex]; nil for gRPC's own types
	hidden  bool  // it cannot be read from outside its package
}

// embeddings caches the embedding of each type: reflect.Type → *embedding.
var embeddings sync.Map

func embeddingOf(t reflect.Type) *embedding {
	known, _ := embeddings.Load(t)
	if e, ok := known.(*embedding); ok {
		return e
	}
	e := newEmbedding(t)
	embeddings.Store(t, e)
	return e
}

func newEmbedding(t reflect.Type) *embedding {
	e := &embedding{pointer: t.Kind() == reflect.Pointer}
	if e.pointer {
		t = t.Elem()
	}
	if ofGRPC(t) {
		return e
	}
	e.hidden = true
	if t.Kind() != reflect.Struct {
		return e
	}
	for _, f := range reflect.VisibleFields(t) {
		declares := f.Type.Kind() == reflect.Interface || ofGRPC(f.Type) || f.Type.Kind() == reflect.Pointer && ofGRPC(f.Type.Elem())
		if !f.Anonymous || !declares || !f.Type.Implements(reflect.TypeFor[grpc.CallOption]()) || e.field != nil && len(e.field) <= len(f.Index) {
			continue
		}
		e.field, e.hidden = f.Index, !f.IsExported() || behindPointer(t, f.Index)
	}
	return e
}

// ofGRPC reports whether a type is one of gRPC's, which declare the methods of a call option.
func ofGRPC(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[grpc.CallOption]().PkgPath() }

// behindPointer reports whether the way to a field has a pointer, which may be nil.
func behindPointer(t reflect.Type, field []int) bool {
	for i := 1; i < len(field); i++ {
		if t.FieldByIndex(field[:i]).Type.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// numberKey holds the number of an attempt in its context, from the second on.
type numberKey struct{}

// AttemptFromContext returns the number of the attempt that a context belongs to: 1 for the first, and for every context
// outside a Retrier. It cannot tell these two apart, because a mark in the context of first attempts would make every call
// allocate. Hedges and attempts of streams count too. A hedge was sent in parallel with attempts that had not responded in
// time. Use it in code that runs once per attempt: inner interceptors, credentials (grpc.WithPerRPCCredentials), stats
// handlers.
func AttemptFromContext(ctx context.Context) (number int, hedge bool) {
	switch n := ctx.Value(numberKey{}).(type) {
	case int:
		return n, false
	case hedgeNumber:
		return int(n), true
	default:
		return 1, false
	}
}

// hedgeNumber is the number of an attempt that is a hedge.
type hedgeNumber int

// contextOfFirst removes the count of other attempts: one that a proxy has passed on from the
// call it serves, or that of an attempt inside of which the call is made. It looks for those first, so that
// all other calls need no copy of their outgoing metadata.
func contextOfFirst(ctx context.Context) context.Context {
	inside := ctx.Value(numberKey{}) != nil
	if len(metadata.ValueFromIncomingContext(ctx, attemptsHeader)) == 0 && !inside {
		return ctx
	}
	if inside {
		ctx = context.WithValue(ctx, numberKey{}, 1)
	}
	if md, _ := metadata.FromOutgoingContext(ctx); len(md.Get(attemptsHeader)) > 0 {
		md.Delete(attemptsHeader)
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	return ctx
}

// contextOfLater sets the number of previous attempts, and marks a hedge. It starts from the caller's metadata
// each time, so that numbers don't accumulate.
func contextOfLater(ctx context.Context, previous int, hedge bool) context.Context {
	md, given := metadata.FromOutgoingContext(ctx)
	switch {
	case !given && previous < len(previousAttempts):
		ctx = metadata.NewOutgoingContext(ctx, previousAttempts[previous])
	case len(md.Get(attemptsHeader)) > 0:
		md.Set(attemptsHeader, strconv.Itoa(previous))
		ctx = metadata.NewOutgoingContext(ctx, md)
	default:
		ctx = metadata.AppendToOutgoingContext(ctx, attemptsHeader, strconv.Itoa(previous))
	}
	if hedge {
		return context.WithValue(ctx, numberKey{}, hedgeNumber(previous+1))
	}
	return context.WithValue(ctx, numberKey{}, previous+1)
}

// previousAttempts has the metadata of attempts without other metadata, by the number of previous attempts. It never changes.
var previousAttempts = [...]metadata.MD{1: {attemptsHeader: {"1"}}, 2: {attemptsHeader: {"2"}}, 3: {attemptsHeader: {"3"}}, 4: {attemptsHeader: {"4"}}}
