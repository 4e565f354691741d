// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package tried

import (
	"sync"
	"sync/atomic"
)

// InUse reports whether a channel to target, its grpc.ClientConn.Target, uses the [Balancer] now. If not, its calls need not
// remember backends. A channel uses its policy from the first call, when names are resolved, until it is closed or idle: for the
// call that wakes it up, InUse returns false. InUse takes no lock, and is safe for concurrent use.
func InUse(target string) bool {
	if balancers.all.Load() == 0 {
		return false
	}
	_, found := balancers.targets.Load(target)
	return found
}

// Use records that a channel to target uses the [Balancer], until stop is called.
func Use(target string) (stop func()) {
	balancers.add(target)
	return sync.OnceFunc(func() { balancers.remove(target) })
}

var balancers inUse

// inUse counts the balancers per target.
type inUse struct {
	all     atomic.Int64
	targets sync.Map // those in count, for readers

	mu    sync.Mutex
	count map[string]int
}

func (u *inUse) add(target string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count == nil {
		u.count = map[string]int{}
	}
	u.all.Add(1)
	u.count[target]++
	u.targets.Store(target, struct{}{})
}

func (u *inUse) remove(target string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.Add(-1)
	if u.count[target]--; u.count[target] == 0 {
		delete(u.count, target)
		u.targets.Delete(target)
	}
}
