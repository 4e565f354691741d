// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
)

// targetNames caches canonical targets, which gRPC builds for each caller.
type targetNames struct {
	known sync.Map // canonical target by target
	n     atomic.Int64
}

// maxNames bounds the cache, which keeps former targets.
const maxNames = 10_000

// canonical returns [grpc.ClientConn.CanonicalTarget], or "" without a connection. It does not distinguish connections with
// the same target and different default schemes.
func (t *targetNames) canonical(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	known, _ := t.known.Load(cc.Target())
	if name, ok := known.(string); ok {
		return name
	}
	if t.n.Add(1) > maxNames {
		t.known.Clear()
		t.n.Store(1)
	}
	name := cc.CanonicalTarget()
	t.known.Store(cc.Target(), name)
	return name
}

// target returns a connection's target as given by the caller, or "" without one. It is for internal lookups only: users
// see, and budgets are shared by, the canonical target.
func target(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}
