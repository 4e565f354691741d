// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/stagger-go/stagger/policy"
)

// callOptions are the options that the caller gave to a call. gRPC writes to the targets of Header, Trailer
// and Peer at the end of each attempt, and then calls OnFinish. So attempts never get the caller's targets:
// forAttempt gives each attempt other targets, and deliver fills the caller's once: a call has one response.
type callOptions struct {
	caller            []grpc.CallOption // as the caller gave them
	shared            []grpc.CallOption // the first attempt's own, then those for every attempt, unchanged; in its array, to save an allocation
	targets           targets           // of the caller
	peer              bool              // attempts report their peers, to the caller or to observers
	unknown           bool              // one may write to a place that attempts would share: see repeatable
	middlewareRetries bool              // the caller gave options of go-grpc-middleware's retries
	codec             bool              // the caller chose a codec
	givesSettings     bool              // the caller gave an option that grpcSettings have, too
	static            bool              // the caller gave grpc.StaticMethod

	maxAttempts int            // the call's limit: the caller's, or a lower one of its policy
	policy      *policy.Policy // the caller's own; nil: the Retrier has the call's
}

// targets is which of a caller's options are filled or called at the end of a call.
type targets uint8

const (
	noTargets    targets = iota
	someTargets          // Trailer, Peer or OnFinish
	headerTarget         // Header, and perhaps others: attempts report their headers
)

// forAttempt returns the options to pass to gRPC for an attempt. It is safe for concurrent use by parallel attempts.
func (o *callOptions) forAttempt(a *attemptOptions) []grpc.CallOption {
	opts := o.shared
	if &opts[0] != &a.array[0] {
		opts = append(a.array[:optionsAdded], o.shared[optionsAdded:]...)
	}
	if a.asked == nil && (o.peer || o.targets == headerTarget) {
		a.asked = new(askedReports)
	}
	if o.peer {
		opts = append(opts, grpc.Peer(&a.asked.peer))
	}
	if o.targets == headerTarget {
		opts = append(opts, grpc.Header(&a.asked.header))
	}
	return slices.Clip(opts)
}

// unheard returns the options to pass to gRPC for the only attempt of a call, if nobody listens to it: the caller's, unchanged, the
// policy's settings, and the mark that finds a Retrier inside another one.
func (o *callOptions) unheard() []grpc.CallOption { return o.appendTargets(o.shared[endOptions:]) }

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
	if o.targets == noTargets {
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

// tellFinished calls the caller's OnFinish options, once.
func (o *callOptions) tellFinished(err error) {
	if o.targets == noTargets {
		return
	}
	for _, option := range o.caller {
		if option, ok := option.(grpc.OnFinishCallOption); ok {
			option.OnFinish(err)
		}
	}
}

// targetOf returns the option for a header, trailer or peer that the caller has passed, or nil if option is another one.
func targetOf(option grpc.CallOption) grpc.CallOption {
	switch option := option.(type) {
	case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
		return option
	}
	return nil
}

// repeatable reports whether several attempts may have an option. Those of gRPC and of this package are known. Only gRPC can declare the
// methods of a [grpc.CallOption], so another type has those of an option that it embeds, which may write to the caller's header, trailer or
// peer. If it embeds [grpc.EmptyCallOption], it does nothing. A pointer to an option of gRPC's may write as well.
func repeatable(option grpc.CallOption) bool {
	t := reflect.TypeOf(option)
	switch {
	case t == nil: // gRPC panics
		return true
	case t.Kind() == reflect.Pointer:
		t = t.Elem()
	case t.PkgPath() == ofGRPC || t.PkgPath() == ofThisPackage:
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	embedded, ok := t.FieldByName(emptyOption.Name())
	return ok && embedded.Type == emptyOption && len(embedded.Index) == 1
}

var (
	emptyOption   = reflect.TypeFor[grpc.EmptyCallOption]()
	ofGRPC        = emptyOption.PkgPath()
	ofThisPackage = reflect.TypeFor[Retrier]().PkgPath()
)

// attemptOptions are the options of one attempt, with the values that gRPC writes to them. No other attempt ever gets their memory: an
// inner interceptor may leave gRPC running, and use the options later.
type attemptOptions struct {
	trailer metadata.MD   // noTrailer until gRPC writes here
	asked   *askedReports // nil: neither the caller nor observers ask for them
	ends    atomic.Uint32 // how often gRPC has ended the attempt, in any goroutine
	onEnd   func()        // called when gRPC has ended the attempt; may be nil
	retrier *Retrier      // notified if gRPC ends the attempt more than once; nil: nobody
	over    chan struct{} // closed when gRPC has ended the attempt; nil for unary calls

	array [optionsAdded + 2]grpc.CallOption // those that we add, then space for that of generated code and for a peer
}

// askedReports are what gRPC reports of an attempt if the caller or observers ask.
type askedReports struct {
	header metadata.MD // nil if none arrived, or without headerTarget
	peer   peer.Peer   // zero without callOptions.peer
}

// A Retrier gives every attempt optionsAdded options of its own. With the first endOptions of them, gRPC reports the attempt's end.
const (
	optionsAdded = 3
	endOptions   = 2
)

// newAttemptOptions returns the options of an attempt. asked says that observers will ask for its peer: then one allocation is enough.
func newAttemptOptions(asked bool) (a *attemptOptions) {
	if asked {
		made := new(struct {
			attemptOptions
			reports askedReports
		})
		made.asked = &made.reports
		a = &made.attemptOptions
	} else {
		a = new(attemptOptions)
	}
	a.init()
	return a
}

// init prepares the options that we add.
func (a *attemptOptions) init() {
	a.trailer = noTrailer
	a.array[0] = grpc.Trailer(&a.trailer)
	a.array[1] = grpc.OnFinish(a.recordEnd)
	a.array[2] = insideOption{}
}

// recordEnd is gRPC's OnFinish. Only that says that gRPC has ended this attempt, with these options: an inner interceptor may drop
// them, or return before gRPC does. Before it no target is read, and nothing is proven; after it, an untouched trailer proves that there was
// no stream, whatever the context. A second call means that an inner interceptor has repeated the attempt, or that the context was
// over when gRPC was to create the stream.
func (a *attemptOptions) recordEnd(err error) {
	first := a.ends.Add(1) == 1
	if !first && a.retrier != nil && (err == nil || isResponse(err)) {
		a.retrier.warnOnce(&innerRetries, "", "")
	}
	if first && a.over != nil {
		close(a.over)
	}
	if a.onEnd != nil {
		a.onEnd()
	}
}

// ended reports whether gRPC has ended the attempt, and won't write here again.
func (a *attemptOptions) ended() bool { return a.ends.Load() > 0 }

// longestEnd bounds the wait for gRPC's OnFinish at the end of a stream's attempt. It expires only if an inner interceptor doesn't
// pass on its options.
const longestEnd = 100 * time.Millisecond

// awaitEnd waits until gRPC has ended an attempt of a stream that has returned: if its context is over, another goroutine of gRPC may
// still write trailer and peer. gRPC ends a unary call in the caller's goroutine, before it returns.
func (a *attemptOptions) awaitEnd() {
	if a.ended() {
		return
	}
	timer := time.NewTimer(longestEnd)
	defer timer.Stop()
	select {
	case <-a.over:
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

// answered reports whether a server has answered: gRPC has ended the attempt, so that it no longer writes the trailer, and there was a stream.
func (a *attemptOptions) answered() bool { return a.ended() && !a.untouched() }

// received returns the trailer; nil if there was no stream.
func (a *attemptOptions) received() metadata.MD {
	if a.untouched() {
		return nil
	}
	return a.trailer
}
