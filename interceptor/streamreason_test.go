// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// prepared is a message whose bytes only gRPC knows. It is prepared with another stream: that alone
// commits the stream that a message is prepared with.
func (s scene) prepared(t *testing.T) *grpc.PreparedMsg {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.On(other, testserver.Hang())
	stream, err := s.conn.NewStream(ctx, bidiStream, other, interceptor.Disable())
	if err != nil {
		t.Fatal(err)
	}
	p := new(grpc.PreparedMsg)
	if err := p.Encode(stream, wrapperspb.String("prepared")); err != nil {
		t.Fatal(err)
	}
	return p
}

// committedBy checks how the only attempt of a stream has ended, and what has committed it, wherever that
// is told.
func (s scene) committedBy(t *testing.T, err error, want policy.Commit) {
	t.Helper()
	e, ok := errors.AsType[*interceptor.Error](err)
	if !ok || e.Reason != policy.ReasonCommitted || e.Commit != want || e.Attempts != 1 {
		t.Errorf("%v, %+v; want one attempt, committed by %q", err, e, want)
	}
	if d := s.decisions[len(s.decisions)-1].Decision; d.Reason != policy.ReasonCommitted || d.Commit != want {
		t.Errorf("the decision is %+v; want committed by %q", d, want)
	}
}

func TestAnErrorTellsWhatHasCommittedItsStream(t *testing.T) {
	var (
		message  = func(stream grpc.ClientStream, _ any) { _ = stream.RecvMsg(new(wrapperspb.StringValue)) }
		headers  = func(stream grpc.ClientStream, _ any) { _, _ = stream.Header() }
		origin   = func(stream grpc.ClientStream, _ any) { stream.Context() }
		trailer  = func(stream grpc.ClientStream, _ any) { stream.Trailer() }
		much     = func(stream grpc.ClientStream, _ any) { _ = stream.SendMsg(wrapperspb.String("a")) }
		prepared = func(stream grpc.ClientStream, p any) { _ = stream.SendMsg(p) }
	)
	type looks []func(stream grpc.ClientStream, prepared any)
	for name, row := range map[string]struct {
		looks looks
		want  policy.Commit
	}{
		"a message":                  {looks{message}, policy.CommitMessage},
		"headers":                    {looks{headers}, policy.CommitHeaders},
		"the context":                {looks{origin}, policy.CommitContext},
		"the trailer":                {looks{trailer}, policy.CommitTrailer},
		"a full buffer":              {looks{much}, policy.CommitBufferFull},
		"a prepared message":         {looks{prepared}, policy.CommitPreparedMessage},
		"the context before all":     {looks{origin, headers, trailer, much, prepared, message}, policy.CommitContext},
		"headers before a message":   {looks{headers, message}, policy.CommitHeaders},
		"a message before headers":   {looks{message, headers}, policy.CommitMessage},
		"a buffer before a message":  {looks{much, message}, policy.CommitBufferFull},
		"a message, then a buffer":   {looks{message, much}, policy.CommitMessage},
		"prepared, then the context": {looks{prepared, origin}, policy.CommitPreparedMessage},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.SendHeader(metadata.Pairs("k", "v")), say("a"), testserver.Pause(time.Second)).Then(down()))
				p := s.prepared(t)
				stream := s.open(t, t.Context(), bidiStream, grpc.MaxRetryRPCBufferSize(1))
				for _, look := range row.looks {
					look(stream, p)
				}
				_, err := receive(stream)
				s.committedBy(t, err, row.want)
			})
		})
	}
}

func TestHeadersThatCommitByPolicyAreTheReason(t *testing.T) {
	retry := plain()
	retry.CommitOn = policy.CommitOnHeaders
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.SendHeader(metadata.Pairs("k", "v")), testserver.Pause(time.Second)).Then(down()))
		_, err := receive(s.open(t, t.Context(), bidiStream))
		s.committedBy(t, err, policy.CommitHeaders)
	})
}

// refusing is an attempt that sends nothing, for a reason that another one might not have.
type refusing struct{ grpc.ClientStream }

func (refusing) SendMsg(any) error { return status.Error(codes.Unavailable, "refused") }

func TestAMessageThatCannotBeSentIsTheReason(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		conn := s.inside(t, func(_ int, stream grpc.ClientStream) grpc.ClientStream { return refusing{stream} })
		stream, err := conn.NewStream(t.Context(), bidiStream, get)
		if err != nil {
			t.Fatal(err)
		}
		s.committedBy(t, stream.SendMsg(wrapperspb.String("a")), policy.CommitUnsendable)
	})
}

// Nothing is kept where nothing may follow, but that is not why nothing follows.
func TestAStreamWithOneAttemptIsNotCommittedButExhausted(t *testing.T) {
	for name, options := range map[string][]interceptor.Option{"by policy": nil, "by the Retrier": {interceptor.WithMaxAttempts(1)}} {
		t.Run(name, func(t *testing.T) {
			c := policy.Config{}
			if options != nil {
				c = config(plain())
			}
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, testserver.Play(testserver.Receive(1)).Then(down()))
				stream := s.open(t, t.Context(), bidiStream)
				send(t, stream, "a")
				if got := s.retrier.Replayed(); got != 0 {
					t.Errorf("%d bytes are kept", got)
				}
				_, err := receive(stream)
				e, _ := errors.AsType[*interceptor.Error](err)
				if e == nil || e.Reason == policy.ReasonCommitted || e.Commit != policy.CommitNone || status.Code(err) != codes.Unavailable {
					t.Errorf("%v, %+v", err, e)
				}
			}, options...)
		})
	}
}

// Attempts that take each other's place are no hedges.
func TestASlowStreamIsRetriedInPlaceIfThePolicySaysSo(t *testing.T) {
	retry := plain()
	retry.PerAttemptTimeout, retry.OnAttemptTimeout = time.Second, policy.OnTimeoutRetry
	play(t, config(retry), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang(), testserver.Play(say("a")))
		if got, _ := receive(s.open(t, t.Context(), bidiStream)); len(got) != 1 || s.waits() != "[1.1s]" {
			t.Errorf("%v after %s", got, s.waits())
		}
		if d := s.decisions[0].Decision; !s.decisions[0].TimedOut || d.Reason != policy.ReasonRetry {
			t.Errorf("%+v; want a retry", s.decisions[0])
		}
	})
}
