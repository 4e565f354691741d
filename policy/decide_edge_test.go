// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

func TestDecideEdges(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, func(r *policy.RetrySpec) { r.Codes = policy.Codes(codes.Unavailable, codes.DeadlineExceeded) })
	t.Run("a timeout is no failure yet, listed or not", func(t *testing.T) {
		t.Parallel()
		call, out, b := policy.Call{Attempts: 1, Safe: true}, failed(codes.DeadlineExceeded), &purse{}
		out.TimedOut = true
		if d := p.Decide(&call, &out, b, noon, 0); !d.Retry || b.failed != 0 {
			t.Errorf("%+v, %d failures; want a retry and none", d, b.failed)
		}
	})
	t.Run("a deadline ages past", func(t *testing.T) {
		t.Parallel()
		call, out := policy.Call{Attempts: 1, Safe: true, Deadline: time.Unix(-1<<40, 0)}, failed(codes.Unavailable)
		if d := p.Decide(&call, &out, &purse{}, noon, 0); d.Reason != policy.ReasonDeadlineTooClose {
			t.Errorf("%+v; want deadline_too_close", d)
		}
	})
	t.Run("a refusal says what the server said", func(t *testing.T) {
		t.Parallel()
		call, out := policy.Call{Attempts: 1, Safe: true}, pushed(codes.Unavailable, "-1")
		if d := p.Decide(&call, &out, &purse{}, noon, 0); !d.Pushback.Stop || d.Pushback.Source != policy.PushbackTrailer {
			t.Errorf("%+v; want the server's stop", d)
		}
	})
}
