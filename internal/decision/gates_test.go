// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"

	"google.golang.org/grpc/codes"

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
	p := mustPolicy(t, nil)
	call := decision.Call{Attempts: 1, Safe: true, Committed: decision.CommitBufferFull}
	d := p.Decide(&call, p.Classify(&out, noon), &purse{}, noon, 0)
	if d.Reason != policy.ReasonCommitted || d.Commit != decision.CommitBufferFull {
		t.Errorf("%s by %q; want committed by the full buffer", d.Reason, d.Commit)
	}
}
