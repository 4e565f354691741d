// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/defaults"
)

// call is one call. Anything may happen to it.
type call struct {
	id       string
	method   string
	attempts atomic.Int64  // received by servers while
	finished atomic.Int64  // number of calls of OnFinish
	told     chan struct{} // closed by the first one
}

func newCall(id, method string) *call {
	return &call{id: id, method: method, told: make(chan struct{})}
}

// onFinish counts the calls of OnFinish.
func (c *call) onFinish() grpc.CallOption {
	return grpc.OnFinish(func(error) {
		if c.finished.Add(1) == 1 {
			close(c.told)
		}
	})
}

// running has the running calls, so that servers can count their attempts.
type running struct {
	mu    sync.Mutex
	calls map[string]*call // by id
}

func (r *running) add(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[string]*call{}
	}
	r.calls[c.id] = c
}

func (r *running) remove(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.id)
}

// attempt counts an attempt of a call, if the call is still running.
func (r *running) attempt(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.calls[id]; c != nil {
		c.attempts.Add(1)
	}
}

// late is how much longer than planned a call may take: this machine may be slow.
const late = 5 * time.Second

// caller makes calls until the context ends.
func (w *world) caller(ctx context.Context, name int) {
	for n := 0; ctx.Err() == nil; n++ {
		c := newCall(fmt.Sprintf("%d-%d", name, n), pick(w.chance, []string{get, get, create, watch, load, chat}))
		w.running.add(c)
		w.make(c)
		w.running.remove(c)
	}
}

// make makes a call, and checks its answer.
func (w *world) make(c *call) {
	w.mu.RLock()
	conn := pick(w.chance, w.conns)
	w.mu.RUnlock()
	limit := 20*time.Millisecond + w.upTo(time.Second)
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), callHeader, c.id))
	defer cancel()
	if w.of(0.2) {
		defer time.AfterFunc(limit, cancel).Stop()
	} else {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	begin := time.Now()
	var err error
	switch c.method {
	case get, create:
		err = w.unary(ctx, conn, c)
	default:
		err = w.stream(ctx, conn, c)
	}
	if took := time.Since(begin); took > limit+late {
		w.add("a call outlives its end", "%s %s took %v, and had %v", c.method, c.id, took, limit)
	}
	w.counts.of(status.Code(err))
	if n := c.attempts.Load(); n > defaults.MaxAttempts || c.method == create && n > 1 {
		w.add("too many attempts", "servers saw %d of %s %s", n, c.method, c.id)
	}
	select { // gRPC may call OnFinish in another goroutine than the one whose call of the stream has returned
	case <-c.told:
	case <-time.After(late):
	}
	if n := c.finished.Load(); n != 1 {
		w.add("OnFinish is not called once", "%d times for %s %s", n, c.method, c.id)
	}
}

// unary makes a unary call. All parts of its answer name the same attempt.
func (w *world) unary(ctx context.Context, conn *grpc.ClientConn, c *call) error {
	var header, trailer metadata.MD
	var from peer.Peer
	reply := wrapperspb.String("before")
	err := conn.Invoke(ctx, c.method, wrapperspb.String(c.id), reply,
		grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from), c.onFinish())
	name := ""
	if err == nil {
		name = reply.GetValue()
	}
	for _, md := range []metadata.MD{header, trailer} {
		for _, by := range md.Get("by") {
			if name == "" {
				name = by
			}
			if by != name {
				w.add("an answer comes from two attempts", "%s and %s", name, by)
			}
		}
	}
	if err == nil && !strings.HasPrefix(name, c.id+"/") {
		w.add("an answer belongs to another call", "%s of %s", name, c.id)
	}
	return err
}

// stream makes a streaming call. It returns the error that ends it, nil after success.
func (w *world) stream(ctx context.Context, conn *grpc.ClientConn, c *call) error {
	desc := &grpc.StreamDesc{ServerStreams: c.method != load, ClientStreams: c.method != watch}
	s, err := conn.NewStream(ctx, desc, c.method, c.onFinish())
	if err != nil {
		return err
	}
	sent := 1
	if desc.ClientStreams {
		sent = messages
	}
	m := new(wrapperspb.StringValue) // reused, as in many
	for i := range sent {
		m.Value = fmt.Sprintf("%s/%d", c.id, i)
		if err := s.SendMsg(m); err != nil {
			break // RecvMsg says why
		}
	}
	_ = s.CloseSend() // RecvMsg says what is wrong
	if w.of(0.2) {
		_, _ = s.Header() // RecvMsg says what is wrong
	}
	return w.receive(s, desc, c)
}

// receive receives until the end. Messages must be in order, and from one attempt.
func (w *world) receive(s grpc.ClientStream, desc *grpc.StreamDesc, c *call) error {
	by := ""
	for i := 0; ; i++ {
		m := new(wrapperspb.StringValue)
		err := s.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			if i != messages {
				w.add("a stream succeeds without all messages", "%d of %s %s", i, c.method, c.id)
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch c.method {
		case load:
			if !strings.HasPrefix(m.GetValue(), c.id+"/") {
				w.add("an answer belongs to another call", "%s of %s", m.GetValue(), c.id)
			}
		case chat:
			if m.GetValue() != fmt.Sprintf("%s/%d", c.id, i) {
				w.add("a message is lost or out of order", "%s at %d of %s", m.GetValue(), i, c.id)
			}
		case watch:
			name, place, _ := cutLast(m.GetValue())
			if i == 0 {
				by = name
			}
			if name != by || place != strconv.Itoa(i) {
				w.add("a message is lost or out of order", "%s at %d of %s", m.GetValue(), i, by)
			}
		}
		if !desc.ServerStreams {
			return nil // the one reply
		}
	}
}

// cutLast cuts a text at its last slash.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
