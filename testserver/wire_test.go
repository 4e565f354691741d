// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

const watch = "/acme.orders.v1.OrderService/WatchOrders"

// text is a message, and textOf one on the wire.
func text(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }

func textOf(s string) string { return "\x0a" + string(rune(len(s))) + s }

// raw answers with messages as raw bytes.
func raw(messages ...string) testserver.Step {
	var list [][]byte
	for _, m := range messages {
		list = append(list, []byte(m))
	}
	return testserver.OK().RawReplies(list...)
}

// wire is a bidirectional stream of texts.
type wire struct {
	grpc.ClientStream
	t *testing.T
}

func (s scene) open(ctx context.Context, t *testing.T, opts ...grpc.CallOption) wire {
	t.Helper()
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, watch,
		append(opts, grpc.WaitForReady(true))...)
	if err != nil {
		t.Fatal(err)
	}
	return wire{stream, t}
}

func (w wire) send(texts ...string) {
	w.t.Helper()
	for _, s := range texts {
		if err := w.SendMsg(text(s)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w wire) closeSend() {
	w.t.Helper()
	if err := w.CloseSend(); err != nil {
		w.t.Fatal(err)
	}
}

// want receives these texts.
func (w wire) want(texts ...string) {
	w.t.Helper()
	for _, want := range texts {
		var m wrapperspb.StringValue
		if err := w.RecvMsg(&m); err != nil || m.GetValue() != want {
			w.t.Fatalf("received %q, %v; want %q", m.GetValue(), err, want)
		}
	}
}

// wantEnd receives the end; OK is the end of a stream.
func (w wire) wantEnd(code codes.Code) {
	w.t.Helper()
	err := w.RecvMsg(&wrapperspb.StringValue{})
	if errors.Is(err, io.EOF) {
		err = nil
	} else if err == nil {
		w.t.Fatal("received a message; want the end")
	}
	wantCode(w.t, answer{err: err}, code)
}
