// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

// payloads is a stats handler that keeps what is sent, and how attempts end.
type payloads struct {
	mu   sync.Mutex // guards all
	sent []any
	ends []codes.Code

	squeezed int // messages that compression has made smaller by half
}

func (*payloads) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*payloads) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*payloads) HandleConn(context.Context, stats.ConnStats)                       {}

func (p *payloads) HandleRPC(_ context.Context, e stats.RPCStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case *stats.OutPayload:
		p.sent = append(p.sent, e.Payload)
		if 2*e.CompressedLength < e.Length {
			p.squeezed++
		}
	case *stats.End:
		p.ends = append(p.ends, status.Code(e.Error))
	}
}

func TestAStatsHandlerSeesTheMessageAndTheEndOfEveryAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		p := new(payloads)
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithStatsHandler(p))...)
		s.On(get, down(), testserver.Play(testserver.Receive(1), say("a")))
		stream, err := conn.NewStream(t.Context(), serverStream, get)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, "x")
		if got, err := receive(stream); fmt.Sprint(got) != "[a]" || err != io.EOF {
			t.Errorf("%v, %v", got, err)
		}
		first, ok := p.sent[0].(proto.Message)
		if !ok || !proto.Equal(first, wrapperspb.String("x")) || len(p.sent) != 2 || fmt.Sprint(p.ends) != "[Unavailable OK]" {
			t.Errorf("sent %v, ends %v", p.sent, p.ends)
		}
	})
}
