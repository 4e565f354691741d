// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// streamEnds is how an attempt of a stream may go. All that it brings names the attempt, but for what it echoes.
func (c *chaos) streamEnds(_ context.Context, a testserver.Attempt) testserver.Step {
	name := fmt.Sprintf("%s/%d", strings.Join(a.Metadata["call"], ""), previousAttempts(a)+1)
	by := metadata.Pairs("by", name)
	var moves []testserver.Move
	if c.of(0.4) {
		moves = append(moves, testserver.SendHeader(by))
	}
	if c.of(0.5) {
		moves = append(moves, testserver.Receive(1))
	}
	moves = append(moves, testserver.Pause(c.upTo(90*ms)))
	step := func() testserver.Step { return testserver.Play(moves...).Trailer(by) }
	switch n := c.float(); {
	case n < 0.35:
		code := []codes.Code{codes.Unavailable, codes.Aborted, codes.NotFound, codes.Internal}[int(n*100)%4]
		return step().Then(testserver.Fail(code, name).Trailer(by))
	case n < 0.40:
		return step().Then(testserver.Hang())
	case n < 0.42:
		return step().Then(testserver.Drop())
	case n < 0.45:
		return step().Then(down().Pushback(fmt.Sprint(int(n*1000) % 90)))
	}
	if a.Metadata["kind"][0] == "single" {
		moves = append(moves, testserver.ReceiveAll(), say(name))
		return step()
	}
	for i := range 3 {
		moves = append(moves, say(fmt.Sprintf("%s#%d", name, i)), testserver.Pause(c.upTo(30*ms)))
		if c.of(0.1) {
			return step().Then(down().Trailer(by))
		}
	}
	if a.Metadata["kind"][0] == "bidi" {
		moves = append(moves, testserver.EchoAll())
	}
	return step()
}

// stamper is an inner interceptor that changes what is sent, in place; sometimes it panics, or fails.
type stamper struct {
	grpc.ClientStream
	*chaos
}

func (s stamper) SendMsg(m any) error {
	switch n := s.float(); {
	case n < 0.005:
		panic(errRefused)
	case n < 0.01:
		return status.Error(codes.Unavailable, "from inside")
	}
	if m, ok := m.(*wrapperspb.StringValue); ok {
		m.Value += "+"
	}
	return s.ClientStream.SendMsg(m)
}

func (s stamper) RecvMsg(m any) error {
	if s.of(0.005) {
		panic(errRefused)
	}
	return s.ClientStream.RecvMsg(m)
}

func (c *chaos) insideStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	switch n := c.float(); {
	case n < 0.01:
		return nil, status.Error(codes.Unavailable, "from inside")
	case n < 0.02:
		return nil, errors.New("no status")
	case n < 0.03:
		panic(errRefused)
	}
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return stamper{stream, c}, nil
}

// chaoticStream is a stream of which anything may happen, and what its application sees of it.
type chaoticStream struct {
	*chaos

	name    string
	desc    *grpc.StreamDesc
	story   *story
	until   time.Time
	resumes bool
	leaves  bool // nobody receives to the end
	large   bool // a message that no attempt can send was taken

	header, trailer metadata.MD // by options
	from            peer.Peer
	finished        []error

	got      []string
	shown    metadata.MD // by Header
	end      error       // of RecvMsg or NewStream; nil if nobody asked for it
	panicked atomic.Bool
}

// stream makes a stream, and looks at what it brings.
func (c *chaos) stream(ctx context.Context, kind, name string) *chaoticStream {
	s := &chaoticStream{chaos: c, name: name, desc: &grpc.StreamDesc{
		ServerStreams: kind == "server" || kind == "bidi", ClientStreams: kind == "client" || kind == "bidi",
	}}
	s.resumes, s.leaves = kind == "server" && c.of(0.3), c.of(0.1)
	ctx, s.story = c.watch(ctx)
	if s.resumes {
		s.story.most = 1000 // each message starts the attempts anew
	}
	s.until = time.Now().Add(time.Minute)
	if c.of(0.7) {
		s.until = time.Now().Add(max(c.upTo(500*ms), ms))
	}
	if !s.desc.ServerStreams {
		kind = "single"
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "call", name, "kind", kind)
	var cancel context.CancelFunc
	if c.of(0.5) {
		ctx, cancel = context.WithDeadline(ctx, s.until)
	} else {
		ctx, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(time.Until(s.until), cancel).Stop()
	}
	defer cancel()
	s.guarded(func() { s.use(ctx, cancel) })
	return s
}

func (s *chaoticStream) options() []grpc.CallOption {
	opts := []grpc.CallOption{
		namedHeader{grpc.HeaderCallOption{HeaderAddr: &s.header}, "x"},
		&grpc.TrailerCallOption{TrailerAddr: &s.trailer},
		grpc.Peer(&s.from), grpc.OnFinish(func(err error) { s.finished = append(s.finished, err) }),
		grpc.MaxCallSendMsgSize(1000), grpc.MaxRetryRPCBufferSize([]int{0, 40, 1 << 16}[int(s.float()*3)]),
	}
	if s.resumes {
		opts = append(opts, interceptor.Resume(func(proto.Message) (proto.Message, bool) {
			return wrapperspb.String(s.name + ">0"), s.of(0.8)
		}))
	}
	return opts
}

// guarded runs a part of the application, which may see a panic of the inner interceptor.
func (s *chaoticStream) guarded(f func()) {
	defer func() {
		if seen := recover(); seen != nil {
			s.panicked.Store(true)
			if seen != errRefused {
				panic(seen)
			}
		}
	}()
	f()
}

func (s *chaoticStream) use(ctx context.Context, cancel context.CancelFunc) {
	stream, err := s.conns[int(s.float()*3)].NewStream(ctx, s.desc, get, s.options()...)
	if err != nil {
		s.end = err
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if s.of(0.5) {
		wg.Go(func() { s.guarded(func() { s.send(stream) }) })
	} else {
		s.send(stream)
	}
	if s.leaves {
		time.Sleep(s.upTo(200 * ms))
		cancel()
		return
	}
	s.receive(stream)
}

func (s *chaoticStream) send(stream grpc.ClientStream) {
	n := 1
	if s.desc.ClientStreams {
		n = int(s.float() * 6)
	}
	m := new(wrapperspb.StringValue)
	for i := range n {
		m.Value = fmt.Sprintf("%s>%d", s.name, i) // one message, used again
		large := s.of(0.01)
		if large {
			m.Value += strings.Repeat("x", 2000)
		}
		if stream.SendMsg(m) != nil {
			return
		}
		s.large = s.large || large
		if s.of(0.3) {
			time.Sleep(s.upTo(40 * ms))
		}
	}
	if n > 0 && s.desc.ClientStreams && s.of(0.05) {
		p := new(grpc.PreparedMsg)
		if p.Encode(stream, wrapperspb.String(fmt.Sprintf("%s>%d+", s.name, n))) == nil {
			_ = stream.SendMsg(p)
		}
	}
	_ = stream.CloseSend()
}

func (s *chaoticStream) receive(stream grpc.ClientStream) {
	switch n := s.float(); {
	case n < 0.2:
		s.shown, _ = stream.Header()
	case n < 0.3:
		_ = stream.Context().Err()
	}
	m := new(wrapperspb.StringValue)
	for s.end == nil {
		if s.of(0.2) {
			time.Sleep(s.upTo(60 * ms))
		}
		if s.end = stream.RecvMsg(m); s.end == nil {
			s.got = append(s.got, m.GetValue())
			if !s.desc.ServerStreams {
				s.end = io.EOF
			}
		}
	}
	if late := time.Since(s.until); late > 300*ms { // it may have slept
		s.add("stream %s returns %v after its end", s.name, late)
	}
	if by, ours := stream.Trailer().Get("by"), s.trailer.Get("by"); len(ours) > 0 && !slices.Equal(by, ours) {
		s.add("stream %s has the trailers of %v and %v", s.name, by, ours)
	}
	if again := stream.RecvMsg(m); again == nil || s.end != io.EOF && again != s.end {
		s.add("stream %s: %v after %v", s.name, again, s.end)
	}
}

// check looks at a stream that is over.
func (s *chaoticStream) check() {
	single := s.most == 1 // gRPC itself calls OnFinish, if it is reached
	if s.story.ended != 1 || len(s.finished) != 1 && !single || len(s.finished) > 1 {
		s.add("stream %s: the end was told %d times, OnFinish %d times", s.name, s.story.ended, len(s.finished))
		return
	}
	if s.panicked.Load() {
		return
	}
	by := s.checkMessages()
	header, trailer := s.header.Get("by"), s.trailer.Get("by")
	for _, parts := range [][]string{header, trailer, s.shown.Get("by")} {
		if !s.resumes && len(parts) > 0 && len(by) > 0 && parts[0] != by {
			s.add("stream %s has messages of %s, header of %v, trailer of %v, headers of %v", s.name, by, header, trailer, s.shown.Get("by"))
		}
	}
	want := s.end
	if want == io.EOF {
		want = nil
		if len(trailer) == 0 || s.from.Addr == nil || s.large && !s.desc.ServerStreams {
			s.add("stream %s succeeds without trailer or peer", s.name)
		}
	}
	drained := want == nil && !single && (status.Code(s.finished[0]) == codes.Canceled || status.Code(s.finished[0]) == codes.DeadlineExceeded)
	if !s.leaves && !single && !drained && s.finished[0] != want {
		s.add("stream %s ends with %v, and OnFinish was told %v", s.name, s.end, s.finished)
	}
	e, ours := errors.AsType[*interceptor.Error](want)
	if want != nil && (!ours || e.Attempts > s.story.most || e.Attempts != len(s.story.attempts)) {
		s.add("stream %s ends with %v, of %v", s.name, want, s.story.attempts)
	}
}

// checkMessages sees that messages are those of one attempt, whole and in order, and what is echoed what was sent,
// stamped once. It returns the attempt.
func (s *chaoticStream) checkMessages() (by string) {
	own, echoed := 0, 0
	for _, text := range s.got {
		attempt, number, isOwn := strings.Cut(text, "#")
		switch {
		case !s.desc.ServerStreams:
			by = text
		case !isOwn:
			if want := fmt.Sprintf("%s>%d+", s.name, echoed); text != want && !strings.HasPrefix(text, s.name+">") || strings.Count(text, "+") != 1 {
				s.add("stream %s echoes %s; want %s", s.name, text, want)
			}
			echoed++
		case s.resumes && attempt != by && number == "0":
			by, own = attempt, 1
		case by != "" && attempt != by || number != fmt.Sprint(own):
			s.add("stream %s brings %v", s.name, s.got)
			return by
		default:
			by, own = attempt, own+1
		}
	}
	if by != "" && !strings.HasPrefix(by, s.name+"/") {
		s.add("stream %s brings %v", s.name, s.got)
	}
	return by
}

func TestStreamChaos(t *testing.T) {
	t.Parallel()
	streams := 120
	if testing.Short() {
		streams = 40
	}
	kinds := []string{"server", "client", "bidi", "single"}
	for _, name := range slices.Sorted(maps.Keys(chaosPolicies())) {
		for kind := range chaosBudgets(t) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					spec := chaosPolicies()[name]
					var known []interceptor.Option
					if rand.IntN(2) == 0 {
						known = append(known, described(t))
					}
					var c *chaos
					c = newChaos(t, spec, chaosBudgets(t)[kind], rand.Uint64(), grpc.WithChainStreamInterceptor(
						func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
							return c.insideStream(ctx, desc, cc, method, open, opts...)
						}), known...)
					c.server.Default(testserver.Func(c.streamEnds))
					ctx, stop := context.WithTimeout(t.Context(), time.Hour) // then streams that hang are found
					var wg, others sync.WaitGroup
					others.Go(func() { c.quarrel(ctx, t, spec) })
					all := make([]*chaoticStream, streams)
					for g := range 10 {
						wg.Go(func() {
							for i := g; i < streams; i += 10 {
								all[i] = c.stream(t.Context(), kinds[(i+i/10)%4], fmt.Sprint(i))
								if i == streams*9/10 {
									_ = c.conns[0].Close()
								}
							}
						})
					}
					wg.Wait()
					stop()
					others.Wait()
					synctest.Wait()
					for _, s := range all {
						s.check()
					}
					if n := c.retrier.Replayed(); n != 0 {
						c.add("%d bytes are kept", n)
					}
					c.check(t)
				})
			})
		}
	}
}
