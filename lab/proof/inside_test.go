// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/testserver"
)

// The parts inside a Retrier in a storm: the server, inner interceptors and a codec.

// serves returns how an attempt runs. Everything that it sends has the attempt's name, except echoes.
func (w *weather) serves(_ context.Context, a testserver.Attempt) testserver.Step {
	call, k := strings.Join(a.Metadata["call"], ""), kind(strings.Join(a.Metadata["kind"], ""))
	name := fmt.Sprintf("%s/%d", call, a.Number)
	by := metadata.Pairs("by", name)
	if n, again := w.arrived.LoadOrStore(call, name); again && w.unsafe {
		w.add("%s arrives as %v and as %s: it isn't declared idempotent", call, n, name)
	}
	var list []faults.Move
	if w.of(0.4) {
		list = append(list, faults.SendHeader(by))
	}
	if k == unary || w.of(0.5) {
		list = append(list, faults.Receive(1))
	}
	list = append(list, faults.Pause(w.upTo(90*ms)))
	step := func() testserver.Step { return faults.Play(list...).Trailer(by) }
	switch n := w.float(); {
	case n < 0.30:
		code := []codes.Code{codes.Unavailable, codes.Aborted, codes.NotFound, codes.Internal}[w.below(4)]
		return step().Then(testserver.Fail(code, name).Trailer(by))
	case n < 0.37:
		return step().Then(testserver.Hang())
	case n < 0.39:
		return step().Then(testserver.Drop())
	case n < 0.43:
		return step().Then(testserver.Fail(codes.Unavailable).Pushback([]string{"-1", "0", "20", "90"}[w.below(4)]))
	case n < 0.45:
		list = append(list, faults.Cut())
		return step()
	case n < 0.48 && k == unary:
		list = append(list, faults.SendRaw(encoded("not yet")))
		return step()
	}
	if !k.desc().ServerStreams {
		if k == clientStream {
			list = append(list, faults.Receive(0))
		}
		list = append(list, faults.SendRaw(encoded(name)))
		return step()
	}
	for i := range 3 {
		list = append(list, faults.SendRaw(encoded(fmt.Sprintf("%s#%d", name, i))), faults.Pause(w.upTo(30*ms)))
		if w.of(0.1) {
			return step().Then(testserver.Fail(codes.Unavailable).Trailer(by))
		}
	}
	if k == bidiStream {
		list = append(list, faults.Echo(0))
	}
	return step()
}

// seen checks that an attempt has received a prefix of the sent messages, in order, each stamped once.
func (w *weather) seen(a testserver.Attempt) {
	if a.End.IsZero() || a.Method != method {
		return
	}
	for i, data := range a.Requests {
		want := fmt.Sprintf("%s>%d+", strings.Join(a.Metadata["call"], ""), i)
		got := decoded(data)
		if a.Metadata.Get("limit")[0] == "0" && got == want+"+" { // not kept, so it is sent as the inner interceptor left it
			continue
		}
		if got != want && !strings.HasPrefix(got, "garbled") {
			w.add("attempt %d of %v received %s; want %s", a.Number, a.Metadata["call"], got, want)
		} else if got != want {
			w.add("attempt %d of %v received garbage: %x", a.Number, a.Metadata["call"], data)
		}
	}
}

// insideUnary is an inner interceptor that sometimes answers itself, or panics.
func (w *weather) insideUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	w.at(atOpening)
	if err := w.own(ctx); err != nil {
		return err
	}
	stamped := wrapperspb.String(req.(*wrapperspb.StringValue).GetValue() + "+")
	if w.of(0.02) { // gRPC may still write its reply when the next attempt has begun, so it gets one of its own
		return w.abandon(ctx, func() { _ = invoke(ctx, method, stamped, new(wrapperspb.StringValue), cc, w.left(opts)...) })
	}
	err := invoke(ctx, method, stamped, reply, cc, w.left(opts)...)
	w.at(atOpening)
	return err
}

// abandon abandons an attempt, whose reply may come later.
func (w *weather) abandon(ctx context.Context, invoke func()) error {
	go func() {
		defer func() { _ = recover() }() // of the codec
		invoke()
	}()
	select {
	case <-ctx.Done():
	case <-time.After(w.upTo(60*ms) + ms):
	}
	return status.Error(codes.Unavailable, "left behind")
}

// own is an answer by an inner interceptor itself.
func (w *weather) own(ctx context.Context) error {
	n := w.float()
	if s, ok := ctx.Value(storyKey{}).(*story); ok && n < 0.03 {
		s.inside.Store(true)
	}
	switch {
	case n < 0.01:
		return status.Error(codes.Unavailable, "from inside")
	case n < 0.02:
		return errors.New("no status")
	case n < 0.03:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// left returns the options that an inner interceptor passes to gRPC.
func (w *weather) left(opts []grpc.CallOption) []grpc.CallOption {
	if !w.swallow {
		return opts
	}
	return withoutListeners(opts)
}

// withoutListeners returns the options without those that report how an attempt has ended.
func withoutListeners(opts []grpc.CallOption) (left []grpc.CallOption) {
	for _, o := range opts {
		switch o.(type) {
		case grpc.OnFinishCallOption, grpc.PeerCallOption, grpc.TrailerCallOption:
		default:
			left = append(left, o)
		}
	}
	return left
}

func (w *weather) insideStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	w.at(atOpening)
	if err := w.own(ctx); err != nil {
		return nil, err
	}
	stream, err := open(ctx, desc, cc, method, w.left(opts)...)
	if err != nil {
		return nil, err
	}
	w.at(atOpening)
	return stamper{stream, w}, nil
}

// stamper is the stream of an inner interceptor that modifies messages in place; sometimes it panics, or fails.
type stamper struct {
	grpc.ClientStream
	*weather
}

func (s stamper) SendMsg(m any) error {
	s.at(atSending)
	if s.of(0.01) {
		return status.Error(codes.Unavailable, "from inside")
	}
	if m, ok := m.(*wrapperspb.StringValue); ok {
		m.Value += "+"
	}
	err := s.ClientStream.SendMsg(m)
	s.at(atSending)
	return err
}

func (s stamper) RecvMsg(m any) error {
	s.at(atReceiving)
	err := s.ClientStream.RecvMsg(m)
	s.at(atReceiving)
	return err
}

func (s stamper) Header() (metadata.MD, error) {
	s.at(atHeader)
	return s.ClientStream.Header()
}

// codec is protobuf's codec as an application's own; sometimes it panics.
type codec struct{ *panics }

func (codec) Name() string { return "proto" }

func (c codec) Marshal(m any) ([]byte, error) {
	c.at(atCodec)
	return proto.Marshal(m.(proto.Message))
}

func (c codec) Unmarshal(data []byte, m any) error {
	c.at(atCodec)
	return proto.Unmarshal(data, m.(proto.Message))
}
