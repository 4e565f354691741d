// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// check checks a call that has ended.
func (c *caller) check() {
	single := c.story.single || c.story.ended == 0 // the end says so: without it, the stream may be gRPC's own
	if !c.opened && c.kind != unary && single && len(c.finished) == toldOfRefusal() {
		c.finished = slices.CompactFunc(c.finished, errors.Is)
	}
	if c.story.ended > 1 || len(c.finished) > 1 {
		c.add("%s: the end was told %d times, OnFinish %d times", c.name, c.story.ended, len(c.finished))
	}
	if c.points != 0 {
		return // what a panic has cut off may be missing
	}
	if inside := c.story.inside.Load() || c.swallow; len(c.finished) == 0 && inside && c.kind != unary && c.story.single {
		return // a stream of one attempt is gRPC's own, which does not hear of what an inner interceptor answers
	}
	if c.story.ended != 1 || len(c.finished) != 1 {
		c.add("%s: the end was told %d times, OnFinish %d times", c.name, c.story.ended, len(c.finished))
		return
	}
	if c.reply != nil && c.reply.GetValue() != c.got[0] {
		c.add("%s: %q is overwritten with %q", c.name, c.got[0], c.reply.GetValue())
	}
	// After its connection was closed, a stream may say once how the call ended, and then what the transport said.
	if !c.leaves && !c.closes && !c.story.single && c.again != nil && c.end != io.EOF && status.Code(c.again) != status.Code(c.end) {
		c.add("%s: %v after %v", c.name, c.again, c.end)
	}
	by := c.checkMessages()
	header, trailer := c.header.Get("by"), c.trailer.Get("by")
	for _, parts := range [][]string{header, trailer, c.shown.Get("by")} {
		if !c.resumes && len(parts) > 0 && by != "" && parts[0] != by {
			c.add("%s has messages of %s, header of %v, trailer of %v, headers of %v", c.name, by, header, trailer, c.shown.Get("by"))
		}
	}
	settled := c.story.single || (c.drained || c.closes || c.spec.Timeout > 0) && (status.Code(c.finished[0]) == codes.Canceled || status.Code(c.finished[0]) == codes.DeadlineExceeded)
	want := c.end
	if want == io.EOF {
		want = nil
		if !c.swallow && !settled && (len(trailer) == 0 || c.peer.Addr == nil) || c.large && !c.kind.desc().ServerStreams {
			c.add("%s succeeds without trailer or peer: %v, %v; OnFinish was told %v; it has received %v in %v, single %v", c.name, c.trailer, c.peer.Addr, c.finished, c.got, c.story.attempts, c.story.single)
		}
	}
	if !c.leaves && !settled && !c.refused && status.Code(c.finished[0]) != status.Code(want) {
		c.add("%s ends with %v, and OnFinish was told %v", c.name, c.end, c.finished)
	}
	if whole := fmt.Sprint(c.got); c.end == io.EOF && c.kind.desc().ServerStreams && !c.leaves && !strings.Contains(whole, "#2") {
		c.add("%s succeeds with %v: a part of what is sent", c.name, whole)
	}
	if e, ours := errors.AsType[*interceptor.Error](want); want != nil && (!ours || e.Attempts > c.story.most || e.Attempts != len(c.story.attempts)) {
		c.add("%s ends with %v, of %v", c.name, want, c.story.attempts)
	}
	if status.Code(want) == codes.NotFound && len(trailer) > 0 && !strings.Contains(want.Error(), trailer[0]) {
		c.add("%s ends with %v and the trailer of %v", c.name, want, trailer)
	}
}

// toldOfRefusal returns how often OnFinish is called for a stream whose context or channel ended before its first attempt:
// before v1.84, gRPC itself called it twice, now once. A stream of one attempt is gRPC's own.
func toldOfRefusal(opts ...grpc.DialOption) (times int) {
	unreachable := func(context.Context, string) (net.Conn, error) { return nil, errors.New("unreachable") }
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(unreachable))
	conn, err := grpc.NewClient("passthrough:///server", opts...)
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	empty := new(emptypb.Empty)
	_ = conn.Invoke(context.Background(), method, empty, empty) // a stream that waits for addresses ends sooner, once
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = conn.NewStream(ctx, serverStream.desc(), method, grpc.OnFinish(func(error) { times++ }))
	return times
}

// checkMessages checks that messages are complete, in order and from one attempt, and that echoes have what was sent,
// stamped once. It returns the attempt.
func (c *caller) checkMessages() (by string) {
	own := 0
	for _, text := range c.got {
		attempt, number, isOwn := strings.Cut(text, "#")
		switch {
		case text == "not yet":
		case !c.kind.desc().ServerStreams:
			by = text
		case !isOwn:
			if !strings.HasPrefix(text, c.name+">") || strings.Count(text, "+") != 1 {
				c.add("%s echoes %s", c.name, text)
			}
		case c.resumes && attempt != by && number == "0":
			by, own = attempt, 1
		case by != "" && attempt != by || number != fmt.Sprint(own):
			c.add("%s brings %v", c.name, c.got)
			return by
		default:
			by, own = attempt, own+1
		}
	}
	if by != "" && !strings.HasPrefix(by, c.name+"/") {
		c.add("%s brings %v", c.name, c.got)
	}
	return by
}

// Without a policy, OnFinish is called for a stream that cannot be opened as often as by gRPC itself; with one, once.
func TestToldOfRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for config, want := range map[string]int{
			`{}`: toldOfRefusal(),
			(&script{most: 2, retryable: []codes.Code{codes.Unavailable}}).retries(""): 1,
		} {
			set := testkit.Must(policy.Parse("policy.json", []byte(config)))(t)
			retrier := testkit.Must(interceptor.New(set))(t)
			if got := toldOfRefusal(retrier.DialOptions()...); got != want {
				t.Errorf("OnFinish was told %d times; want %d\n%s", got, want, config)
			}
		}
	})
}
