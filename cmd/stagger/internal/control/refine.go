// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// refined adds what comes before the end, and the trailer.
func (b *builder) refined(path string, s *faultserverv1.Step, step testserver.Step) testserver.Step {
	if s.GetQueue() != nil {
		if q := b.queue(path+".queue", s.GetQueue()); q != nil {
			step = step.Through(q)
		}
	}
	if len(s.GetHeader()) > 0 {
		step = step.Header(b.metadata(path+".header", s.GetHeader()))
	}
	if s.GetDelay() != nil {
		step = step.Delay(b.wait(path+".delay", s.GetDelay()))
	}
	if len(s.GetReplies()) > 0 {
		step = step.Raw(b.replies(path+".replies", s.GetReplies())...)
	}
	if len(s.GetTrailer()) > 0 {
		step = step.Trailer(b.metadata(path+".trailer", s.GetTrailer()))
	}
	if len(s.GetPushback()) > 0 {
		for i, value := range s.GetPushback() {
			b.ascii(document.Item(path+".pushback", i), value)
		}
		step = step.Pushback(s.GetPushback()...)
	}
	if s.GetRetryAfter() != "" {
		b.ascii(path+".retryAfter", s.GetRetryAfter())
		step = step.RetryAfter(s.GetRetryAfter())
	}
	return step
}

// wait is a duration that a test server can wait.
func (b *builder) wait(path string, d *durationpb.Duration) time.Duration {
	t, ok := b.duration(path, d)
	if ok && t < 0 {
		b.report.Errorf(path, t, "must be 0 or more")
		return 0
	}
	return t
}

// duration is 0 when absent, and for one that has been reported.
func (b *builder) duration(path string, d *durationpb.Duration) (time.Duration, bool) {
	const most = int64(math.MaxInt64/time.Second) - 1
	if s := d.GetSeconds(); d != nil && !d.IsValid() || s > most || s < -most {
		b.report.Errorf(path, d, "must be at most %ds, 292 years", most)
		return 0, false
	}
	return d.AsDuration(), true
}
