// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package tried

import (
	"sync"
	"sync/atomic"
)

// use is what is known of the channels that use the [Balancer], by their targets.
var use struct {
	any     atomic.Bool // a channel has used the balancer: until then, InUse needs no look at targets
	targets sync.Map    // those in channels, for readers

	mu       sync.Mutex // guards all below
	channels map[string]int
}

// InUse reports whether a channel to target, its grpc.ClientConn.Target, uses the [Balancer] now. If not, its calls need not
// remember backends. A channel uses its policy from the first call, when names are resolved, until it is closed or idle: for the
// call that wakes it up, InUse returns false. InUse takes no lock, and is safe for concurrent use.
func InUse(target string) bool {
	if !use.any.Load() {
		return false
	}
	_, found := use.targets.Load(target)
	return found
}

// Channel is a channel that uses the [Balancer]. Its methods are called one at a time.
type Channel struct {
	target string
	left   bool
}

// Use records that a channel to target uses the [Balancer], until [Channel.Leave] is called.
func Use(target string) *Channel {
	use.mu.Lock()
	defer use.mu.Unlock()
	if use.channels == nil {
		use.channels = map[string]int{}
	}
	use.channels[target]++
	use.targets.Store(target, struct{}{})
	use.any.Store(true)
	return &Channel{target: target}
}

// Leave records that the channel doesn't use the [Balancer] any more.
func (c *Channel) Leave() {
	use.mu.Lock()
	defer use.mu.Unlock()
	if c.left {
		return
	}
	c.left = true
	if use.channels[c.target]--; use.channels[c.target] == 0 {
		delete(use.channels, c.target)
		use.targets.Delete(c.target)
	}
}
