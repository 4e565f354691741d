// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/testkit"
)

func TestReplayLog_Copies(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	l := replayLog{limit: 1 << 20, total: &total, most: 1 << 20}
	of := new(encoder)
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i), 1+i%5*1000) } // some share a chunk
	m := new(wrapperspb.StringValue)                                                // applications reuse their messages
	for i := range 100 {
		m.Value = text(i)
		var e encoded
		if why := of.encode(m, l.limit, &e); why != decision.CommitNone || !l.keep(&e) {
			t.Fatal(i, why)
		}
	}
	n := 0
	testkit.NoError(t, l.replay(func(got any) error {
		if !proto.Equal(got.(proto.Message), wrapperspb.String(text(n))) {
			t.Errorf("message %d is %.20v", n, got)
		}
		n++
		return nil
	}))
	if n != 100 {
		t.Errorf("%d messages; want 100", n)
	}
	l.release()
	if total.Load() != 0 {
		t.Error("still kept:", total.Load())
	}
}

func TestReplayLog_Limits(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	l := replayLog{limit: 100, total: &total, most: 150}
	other := replayLog{limit: 100, total: &total, most: 150}
	e := encoded{first: true, size: 95}
	if !l.keep(&e) || l.keep(&encoded{}) || other.keep(&e) || total.Load() != 100 {
		t.Error("limits of a call, or of all calls", total.Load())
	}
	for m, want := range map[any]decision.Commit{
		new(grpc.PreparedMsg): decision.CommitPreparedMessage, "text": decision.CommitUnsendable, wrapperspb.String(strings.Repeat("x", 100)): decision.CommitBufferFull,
	} {
		if why := new(encoder).encode(m, 100, &e); why != want {
			t.Errorf("%T: %s; want %s", m, why, want)
		}
	}
}
