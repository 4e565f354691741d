// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
)

// targetNames remembers canonical targets, which gRPC puts together anew each time.
type targetNames struct {
	known sync.Map // canonical target by target
	n     atomic.Int64
}

// maxNames bounds what is kept of targets that are gone.
const maxNames = 10_000

// canonical returns [grpc.ClientConn.CanonicalTarget]; "" without a connection. Connections with the same target but
// another default scheme are taken for one.
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

// target is what a connection was made for, as it was given; "" without one. Nobody else sees it: all that is shown or
// shared goes by the canonical target.
func target(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}
