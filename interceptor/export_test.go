// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

// Replayed is how many bytes streams keep for replay now.
func (r *Retrier) Replayed() int64 { return r.replayed.Load() }

// Delivered is how many service configs are kept, of how many connections with a wrapped resolver.
func (r *Retrier) Delivered() (texts, conns int) {
	t := &r.serviceConfigs.targets
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range t.conns {
		conns += len(list)
	}
	return len(t.texts), conns
}
