// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

func TestDecideLeavesWaitLimit(t *testing.T) {
	t.Parallel()
	call, out, p := decision.Call{Attempts: 1, Safe: true}, failed(codes.Unavailable), purse{empty: true}
	plain := mustPolicy(t, nil)
	plain.Decide(&call, plain.Classify(&out, noon), &p, noon, 0)
	if p.entered != 1 || p.left != 1 {
		t.Errorf("entered %d times, left %d times", p.entered, p.left)
	}
}

func TestDecideCommit(t *testing.T) {
	t.Parallel()
	out := failed(codes.Unavailable)
	out.Header = metadata.MD{}
	onHeaders := mustPolicy(t, func(r *policy.RetrySpec) { r.CommitOnHeaders = true })
	for _, row := range []struct {
		seen, want decision.Commit
	}{{decision.CommitNone, decision.CommitHeaders}, {decision.CommitBufferFull, decision.CommitBufferFull}} {
		call := decision.Call{Attempts: 1, Safe: true, Committed: row.seen}
		if d := onHeaders.Decide(&call, onHeaders.Classify(&out, noon), &purse{}, noon, 0); d.Reason != policy.ReasonCommitted || d.Commit != row.want {
			t.Errorf("%q: %s by %q; want %q", row.seen, d.Reason, d.Commit, row.want)
		}
	}
}
