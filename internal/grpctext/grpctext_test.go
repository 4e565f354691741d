// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package grpctext_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/grpctext"
)

// Each error is recognised by code and text together, and also if an interceptor has wrapped it.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code                               codes.Code
		text                               string
		dropped, deterministic, badMessage bool
	}{
		{code: codes.Unavailable, text: "RPC is dropped", dropped: true},
		{code: codes.Unavailable, text: "request dropped by grpclb", dropped: true},
		{code: codes.Unavailable, text: "max requests 1024 exceeded on service orders", dropped: true},
		{code: codes.Unavailable, text: "the RPC is dropped"},
		{code: codes.Internal, text: "RPC is dropped"},
		{code: codes.ResourceExhausted, text: "trying to send message larger than max (9 vs. 4)", deterministic: true, badMessage: true},
		{code: codes.ResourceExhausted, text: "gRPC message exceeds maximum size 4: 9", deterministic: true},
		{code: codes.ResourceExhausted, text: "quota exceeded"},
		{code: codes.Unavailable, text: "trying to send message larger than max (9 vs. 4)"},
		{code: codes.Internal, text: "grpc: error while marshaling: no field", deterministic: true, badMessage: true},
		{code: codes.Internal, text: "cardinality violation: expected <EOF>", deterministic: true},
		{code: codes.Internal, text: "out of disk"},
		{code: codes.OutOfRange, text: "message length too large: found 9 bytes, the limit is: 4 bytes", deterministic: true},
	} {
		st := status.New(row.code, row.text)
		for _, err := range []error{st.Err(), fmt.Errorf("inner: %w", st.Err())} {
			if got := grpctext.Dropped(row.code, err); got != row.dropped {
				t.Errorf("Dropped(%v) = %v", err, got)
			}
			if got := grpctext.Deterministic(row.code, err); got != row.deterministic {
				t.Errorf("Deterministic(%v) = %v", err, got)
			}
			if got := grpctext.Message(err); got != row.text {
				t.Errorf("Message(%v) = %q; want %q", err, got, row.text)
			}
		}
		if got := grpctext.BadMessage(st); got != row.badMessage {
			t.Errorf("BadMessage(%v) = %v", st, got)
		}
	}
	if got := grpctext.Message(errors.New("no status")); got != "" {
		t.Errorf("an error without a status has the message %q", got)
	}
}

// gRPC says what an attempt without a stream has waited for only by its text.
func TestAwaited(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ connection, stream bool }{
		"context deadline exceeded while waiting for connections to become ready": {connection: true},
		"latest balancer error: connection refused":                               {connection: true},
		"context canceled":                       {stream: true},
		"context deadline exceeded":              {stream: true},
		"grpc: the client connection is closing": {},
	} {
		err := fmt.Errorf("inner: %w", status.Error(codes.Canceled, text))
		if c, s := grpctext.AwaitedConnection(err), grpctext.AwaitedStream(err); c != want.connection || s != want.stream {
			t.Errorf("%q: connection %v, stream %v; want %+v", text, c, s, want)
		}
	}
}
