// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
)

// check looks at a call that is over.
func (c *caller) check() {
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
	if !c.leaves && !c.story.single && c.again != nil && c.end != io.EOF && status.Code(c.again) != status.Code(c.end) {
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
	if !c.leaves && !settled && status.Code(c.finished[0]) != status.Code(want) {
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

// checkMessages sees that messages are those of one attempt, whole and in order, and what is echoed what was sent,
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
