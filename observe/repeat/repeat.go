// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package repeat checks, in tests and staging, that methods that are declared idempotent really are: see [ForTests].
package repeat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/hooks/repeating"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// ForTests makes a Retrier send each successful call of a method that is declared idempotent, by whatever means, a second time. If
// code or reply differ, the [interceptor.Observer] gets a warning, once for each method and difference: a Diagnostic whose Field is
// "repeat", and whose Value is the method. The application gets the first response, and its own assertions find effects that no
// reply shows. ignore clears fields that may differ, such as times, in copies of both replies; nil ignores none.
//
// A second call starts when the first returns. It has the same message, key and metadata, as much time, and the mark of a retry
// (grpc-previous-rpc-attempts: 1). No budget pays for it, and only the server, inner interceptors and stats handlers see it. UNAVAILABLE,
// RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED and CANCELLED prove nothing about it. At most 16 run at a time. Beyond that, a call is not
// repeated, and a warning says so. [interceptor.Retrier.Close] cancels them and waits, so an observer must not call it; a note then counts
// all of these. In a test, wait first, as by synctest.Wait.
//
// A second call has the request as the application passed it. If an interceptor after the Retrier has changed the request of a unary call
// in place, the observer also gets a warning, because a retry would send a request that was changed twice.
//
// Of a server stream that was read to its end, the messages of the first MiB are compared. Other streams are never repeated,
// nor are calls in mode OFF, calls made for an incoming call that is itself a retry, and, with a warning, calls whose messages
// aren't protobuf's. If the option is given more than once, the last one applies.
func ForTests(ignore func(method string, reply proto.Message)) interceptor.Option {
	return func(r *interceptor.Retrier) error {
		x := &repeater{ignore: ignore, reported: map[string]bool{}}
		x.ctx, x.cancel = context.WithCancel(context.Background())
		repeating.Install(r, x)
		return nil
	}
}

const (
	mostCalls    = 16
	mostCompared = 1 << 20 // bytes of a stream, each message with its memory
	memory       = 1 << 8
	mostReports  = 1000

	option = "repeat.ForTests" // the Field of diagnostics about the option itself
)

// repeater makes the second calls of a Retrier.
type repeater struct {
	ignore   func(method string, reply proto.Message)
	diagnose func(severity string, d policy.Diagnostic)
	typeOf   func(m any) protoreflect.MessageType
	ctx      context.Context // ends the calls
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	closing  sync.Once

	mu                                 sync.Mutex // guards all below
	running                            int
	same, differ, unanswered, leftOver int
	reported                           map[string]bool
}

// Begin implements [repeating.Repeater].
func (x *repeater) Begin(diagnose func(severity string, d policy.Diagnostic), typeOf func(m any) protoreflect.MessageType) {
	x.diagnose, x.typeOf = diagnose, typeOf
	x.warn(option, "", "calls of methods that are declared idempotent are sent twice, and no budget pays: this is for tests and staging")
}

// warn gives a warning, unless it was given before. Their number is bounded, since users may choose the names of methods.
func (x *repeater) warn(field, method, text string) {
	key := field + " " + method + " " + text
	x.mu.Lock()
	fresh := !x.reported[key] && len(x.reported) < mostReports
	if fresh {
		x.reported[key] = true
	}
	x.mu.Unlock()
	if fresh {
		x.diagnose(document.SeverityWarning, policy.Diagnostic{Field: field, Value: method, Message: text})
	}
}

// Close implements [repeating.Repeater].
func (x *repeater) Close() {
	x.closing.Do(func() {
		x.mu.Lock()
		x.cancel() // with the lock, so that no call starts after Wait
		x.mu.Unlock()
		x.ended.Wait()
		x.diagnose(document.SeverityNote, policy.Diagnostic{Field: option, Message: fmt.Sprintf("%d second calls were as the first, %d differed, %d got no response, and "+
			"%d not made, because %d ran", x.same, x.differ, x.unanswered, x.leftOver, mostCalls)})
	})
}

// second is a second call, and what it is compared with.
type second struct {
	*repeating.Call

	request proto.Message
	reply   protoreflect.MessageType
	want    []proto.Message
	more    bool                                                         // the first call had more than want
	open    func(ctx context.Context) (receive func(any) error, _ error) // sends the request
}

// Copy implements [repeating.Repeater].
func (x *repeater) Copy(req any) proto.Message { return x.copied(req) }

// Unary implements [repeating.Repeater].
func (x *repeater) Unary(get func() *repeating.Call, given proto.Message, req, reply any, invoke grpc.UnaryInvoker) {
	call := get()
	if call == nil {
		return
	}
	if sent, ok := req.(proto.Message); ok && given != nil && !proto.Equal(given, sent) {
		x.warn("repeat", call.Name, "an interceptor after the Retrier changes requests in place, "+
			"so a retry sends a request that was changed twice: "+
			"let it change a copy (proto.Clone)")
	}
	s := &second{Call: call, request: given, reply: x.typeOf(reply), want: []proto.Message{x.copied(reply)}}
	s.open = func(ctx context.Context) (func(any) error, error) {
		received := false
		return func(m any) error {
			if received {
				return io.EOF
			}
			received = true
			return invoke(ctx, s.Method, s.request, m, s.Conn, s.Options...)
		}, nil
	}
	x.start(s)
}

// copied returns a copy of a message of protobuf's, or nil.
func (x *repeater) copied(m any) proto.Message {
	if x.typeOf(m) == nil {
		return nil
	}
	message, _ := m.(proto.Message)
	return proto.Clone(message)
}

// start makes a second call in a goroutine, if there is a place and its messages are known.
func (x *repeater) start(s *second) {
	switch {
	case s.request == nil || s.reply == nil:
		x.warn(option, s.Name, "is not repeated: its messages can't be copied, since they aren't protobuf's")
	case x.begin():
		go func() {
			defer x.ended.Done()
			x.end(s, x.run(s))
		}()
	}
}

// begin takes a place.
func (x *repeater) begin() bool {
	x.mu.Lock()
	closed, full := x.ctx.Err() != nil, x.running == mostCalls
	switch {
	case closed:
	case full:
		x.leftOver++
	default:
		x.running++
		x.ended.Add(1)
	}
	x.mu.Unlock()
	if full && !closed {
		x.warn(option, "", "16 second calls run: calls that end before one of them are not repeated")
	}
	return !full && !closed
}

// result is how a second call has ended: with an error, or as text says, "" if it was as the first.
type result struct {
	text string
	err  error
}

func (x *repeater) run(s *second) result {
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	defer context.AfterFunc(x.ctx, cancel)()
	if !s.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, s.Deadline)
		defer cancel()
	}
	receive, err := s.open(ctx)
	if err != nil {
		return result{err: err}
	}
	for i := 0; i < len(s.want) || !s.more; i++ {
		got := s.reply.New().Interface()
		switch err := receive(got); {
		case errors.Is(err, io.EOF) && i == len(s.want):
			return result{}
		case errors.Is(err, io.EOF), err == nil && i == len(s.want):
			return result{text: "has another number of messages"}
		case err != nil:
			return result{err: err}
		}
		if x.ignore != nil {
			x.ignore(s.Method, s.want[i])
			x.ignore(s.Method, got)
		}
		if !proto.Equal(s.want[i], got) {
			return result{text: "has another reply: " + strings.Join(differences("", s.want[i].ProtoReflect(), got.ProtoReflect()), ", ")}
		}
	}
	return result{}
}

// end counts a second call, and reports what differs.
func (x *repeater) end(s *second, r result) {
	count := &x.differ
	switch code := status.Code(r.err); {
	case code == codes.Unavailable, code == codes.ResourceExhausted, code == codes.DeadlineExceeded, code == codes.Canceled:
		count = &x.unanswered
	case r.err != nil:
		r.text = "fails with " + code.String()
	case r.text == "":
		count = &x.same
	}
	x.mu.Lock()
	x.running--
	*count++
	x.mu.Unlock()
	if count == &x.differ {
		x.warn("repeat", s.Name, "is declared idempotent, but the second of two equal calls "+r.text)
	}
}

// differences returns the names of the fields in which two messages differ.
func differences(prefix string, a, b protoreflect.Message) (names []string) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case a.Has(f) == b.Has(f) && a.Get(f).Equal(b.Get(f)):
		case a.Has(f) && b.Has(f) && f.Message() != nil && f.Cardinality() != protoreflect.Repeated:
			names = append(names, differences(prefix+f.TextName()+".", a.Get(f).Message(), b.Get(f).Message())...)
		default:
			names = append(names, prefix+f.TextName())
		}
	}
	if len(names) == 0 {
		names = append(names, prefix+"unknown fields")
	}
	return names
}
