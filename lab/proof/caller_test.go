// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
)

// caller is a call in a storm, and its application's view. Anything may happen to the call.
type caller struct {
	*weather

	name    string
	kind    kind
	story   *story
	until   time.Time
	cancels context.CancelFunc // called before the application's next call after until; may be nil
	slack   time.Duration      // how long after until that may be
	limit   int                // of bytes to keep; -1: gRPC's
	resumes bool
	leaves  bool // the application doesn't receive to the end
	drained bool // it received after its context ended: received messages are delivered, the end is the context's
	large   bool // SendMsg accepted a message that no attempt can send
	refused bool // SendMsg refused one: that ends the call, and as in gRPC, RecvMsg may say how the server had ended it
	opened  bool // NewStream has returned a stream

	header, trailer metadata.MD // by options
	peer            peer.Peer
	told            sync.Mutex
	finished        []error

	reply *wrapperspb.StringValue // of a unary call that has succeeded
	got   []string
	shown metadata.MD // from Header
	again error       // of another RecvMsg after the end
	end   error       // of RecvMsg or NewStream; nil if neither was called
	cut   atomic.Bool // by a panic
}

// call makes a call.
func (w *weather) call(k kind, name string) *caller {
	c := &caller{weather: w, name: name, kind: k}
	c.resumes, c.leaves = k == serverStream && c.of(0.3) && !w.unsafe, k != unary && c.of(0.1)
	c.story = &story{findings: w.findings, name: name, most: w.most, single: w.most < 2, parallel: hasParallel(w.spec), attempts: map[int]bool{}}
	if c.resumes {
		c.story.most = 1000 // each message restarts the attempts
	}
	ctx := context.WithValue(context.Background(), storyKey{}, c.story)
	c.limit = []int{-1, -1, -1, 0, 40, 1 << 16}[c.below(6)]
	ctx = metadata.AppendToOutgoingContext(ctx, "call", name, "kind", string(k), "limit", strconv.Itoa(c.limit))
	c.until = time.Now().Add(time.Minute)
	if d := c.upTo(500*ms) + ms; c.of(0.7) { // not 0: two timers at once crash Go 1.26's race detector in a bubble
		c.until = time.Now().Add(d)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch c.below(6) {
	case 0, 1:
		defer time.AfterFunc(time.Until(c.until), cancel).Stop()
	case 2:
		c.cancels, c.slack = cancel, 50*ms
		defer time.AfterFunc(time.Until(c.until)+c.slack, cancel).Stop()
	case 3:
		ctx, cancel = context.WithDeadline(ctx, c.until)
		ctx = lateContext{ctx, c.until.Add(-c.upTo(10 * ms))}
	default:
		ctx, cancel = context.WithDeadline(ctx, c.until)
	}
	defer cancel()
	c.guarded(func() {
		if k == unary {
			c.unary(ctx)
		} else {
			c.stream(ctx, cancel)
		}
	})
	return c
}

// lateContext is a context whose Done closes after its deadline.
type lateContext struct {
	context.Context

	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// guarded runs a part of the application, which may get a panic of foreign code, or end with its goroutine.
func (c *caller) guarded(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		whole := false
		defer func() {
			p := recover()
			if c.cut.CompareAndSwap(false, c.cut.Load() || !whole); p != nil && p != errFault && !strings.Contains(fmt.Sprint(p), errFault.Error()) {
				c.add("%s panics with %v", c.name, p)
			}
		}()
		f()
		whole = true
	}()
	<-done
}

func (c *caller) options() []grpc.CallOption {
	opts := []grpc.CallOption{
		grpc.Header(&c.header), grpc.Trailer(&c.trailer), grpc.Peer(&c.peer),
		grpc.OnFinish(func(err error) {
			c.told.Lock()
			c.finished = append(c.finished, err)
			c.told.Unlock()
			c.at(atFinish)
		}),
		grpc.MaxCallSendMsgSize(1000),
	}
	if c.points&atCodec != 0 {
		opts = append(opts, grpc.ForceCodec(codec{c.panics}))
	}
	if c.limit >= 0 {
		opts = append(opts, grpc.MaxRetryRPCBufferSize(c.limit))
	}
	if c.resumes {
		opts = append(opts, interceptor.Resume(func(proto.Message) (proto.Message, bool) {
			c.at(atResume)
			return wrapperspb.String(c.name + ">0"), c.of(0.8)
		}))
	}
	return opts
}

// timed checks that a call of the application does not outlive its context.
func timed[T any](c *caller, what string, f func() T) T {
	start := time.Now()
	if c.cancels != nil && !start.Before(c.until) {
		c.cancels()
	}
	result := f()
	last := c.until
	if start.After(last) {
		last = start
	}
	allowed := c.slack
	if c.swallow {
		allowed += 200 * ms // until Gone reports the attempts
	}
	if late := time.Since(last); late > allowed {
		c.add("%s: %s returns %v after the call's end", c.name, what, late)
	}
	return result
}

func (c *caller) unary(ctx context.Context) {
	reply := wrapperspb.String("what was there before")
	c.end = timed(c, "Invoke", func() error {
		return c.conns[c.below(3)].Invoke(ctx, method, wrapperspb.String(c.name+">0"), reply, c.options()...)
	})
	if c.end == nil { // else an abandoned attempt may still write there, as in gRPC itself
		c.reply, c.got, c.end = reply, []string{reply.GetValue()}, io.EOF
	}
}

func (c *caller) stream(ctx context.Context, cancel context.CancelFunc) {
	var stream grpc.ClientStream
	if c.end = timed(c, "NewStream", func() (err error) {
		stream, err = c.conns[c.below(3)].NewStream(ctx, c.kind.desc(), method, c.options()...)
		return err
	}); c.end != nil {
		return
	}
	c.opened = true
	var wg sync.WaitGroup
	defer wg.Wait()
	if c.of(0.5) {
		wg.Go(func() { c.guarded(func() { c.sends(stream) }) })
	} else {
		c.sends(stream)
	}
	if c.leaves {
		time.Sleep(c.upTo(200 * ms))
		if c.of(0.3) {
			c.shown, _ = stream.Header()
		}
		cancel()
		return
	}
	c.receives(stream)
}

func (c *caller) sends(stream grpc.ClientStream) {
	n := 1
	if c.kind.desc().ClientStreams {
		n = c.below(6)
	}
	m := new(wrapperspb.StringValue)
	for i := range n {
		m.Value = fmt.Sprintf("%s>%d", c.name, i) // the same message again
		large := c.of(0.01)
		if large {
			m.Value += strings.Repeat("x", 2000)
		}
		if err := timed(c, "SendMsg", func() error { return stream.SendMsg(m) }); err != nil {
			c.refused = err != io.EOF
			return
		}
		c.large = c.large || large
		if c.of(0.3) {
			time.Sleep(c.upTo(40 * ms))
		}
	}
	timed(c, "CloseSend", stream.CloseSend)
}

func (c *caller) receives(stream grpc.ClientStream) {
	switch n := c.float(); {
	case n < 0.2:
		timed(c, "Header", func() (err error) { c.shown, err = stream.Header(); return err })
	case n < 0.3:
		_ = timed(c, "Context", stream.Context).Err()
	}
	m := new(wrapperspb.StringValue)
	for c.end == nil {
		if c.of(0.2) {
			time.Sleep(c.upTo(60 * ms))
		}
		c.end = timed(c, "RecvMsg", func() error { return stream.RecvMsg(m) })
		c.drained = !time.Now().Before(c.until)
		if c.end == nil {
			c.got = append(c.got, m.GetValue())
			if !c.kind.desc().ServerStreams {
				c.end = io.EOF
			}
		}
	}
	if by, ours := stream.Trailer().Get("by"), c.trailer.Get("by"); len(ours) > 0 && !slices.Equal(by, ours) {
		c.add("%s has the trailers of %v and %v", c.name, by, ours)
	}
	c.again = stream.RecvMsg(m)
}
