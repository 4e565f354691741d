// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"sync"
	"sync/atomic"
)

// InUse reports whether a channel to target, its grpc.ClientConn.Target, uses the policy now. If not, calls need no
// [NewContext]. A channel uses its policy from the first call, when names are resolved, until it is closed or idle: for the
// call that wakes it up, InUse returns false. InUse takes no lock, and is safe for concurrent use.
func InUse(target string) bool {
	if targets.policies.Load() == 0 {
		return false
	}
	_, found := targets.inUse.Load(target)
	return found
}

var targets targetSet

// targetSet counts the policies per target.
type targetSet struct {
	policies atomic.Int64 // for all targets
	inUse    sync.Map     // the targets in count, for readers

	mu    sync.Mutex
	count map[string]int
}

func (s *targetSet) add(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.policies.Add(1)
	s.count[target]++
	s.inUse.Store(target, struct{}{})
}

func (s *targetSet) remove(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policies.Add(-1)
	if s.count[target]--; s.count[target] == 0 {
		delete(s.count, target)
		s.inUse.Delete(target)
	}
}
