// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/tried"
)

// backend is one server of a service: some workers behind a bounded queue.
type backend struct {
	service  *service
	index    int
	busy     int // workers
	queue    []*attempt
	dropped  int // queued requests without a client, if the backend drops those
	faults   faults
	byMethod map[string]*faults // instead, of requests of these methods
	empty    time.Duration      // when the queue was empty last
	starts   uint32             // how often it was down, and 1: older connections are broken
}

// inHand returns how many requests are in the queue and with the workers.
func (b *backend) inHand() int { return b.busy + b.waiting() }

func (b *backend) waiting() int { return len(b.queue) - b.dropped }

// arrive accepts a request. The faults at this time decide how it ends, even if it is served later.
func (b *backend) arrive(a *attempt) {
	b.service.countRequest(a)
	f := b.faultsFor(a)
	switch {
	case f.hangs:
		return
	case f.down != nil:
		a.reply(f.down)
		return
	}
	switch failure := b.service.drawFailure(f.flaky); {
	case failure != nil && failure.atOnce:
		a.reply(failure.fails)
		return
	case failure != nil:
		a.fails = failure.fails
	case f.slowPart > 0:
		if b.service.random.Float64() < f.slowPart {
			a.slow = f.slowBy
		}
	}
	switch {
	case b.busy < b.faults.workers:
		b.serve(a)
	case b.waiting() < b.service.spec.Queue:
		if a.queued, a.since = true, b.service.world.now; len(b.queue) == 0 {
			b.empty = a.since
		}
		b.queue = append(b.queue, a)
	default:
		b.service.counts.refused++
		a.reply(b.service.queueFull)
	}
}

// serve occupies a worker.
func (b *backend) serve(a *attempt) {
	b.busy++
	took, times := b.service.drawWork(a), b.faultsFor(a).slower*a.link.work
	if most := b.service.spec.Thrash; most > 1 && b.service.spec.Queue > 0 {
		times *= 1 + (most-1)*float64(b.waiting())/float64(b.service.spec.Queue)
	}
	if b.service.spec.Connect > 0 && a.link.connect(a) {
		took += time.Duration(b.service.spec.Connect * float64(b.service.spec.Time.Mean()))
	}
	if times != 1 {
		took = time.Duration(min(float64(took)*times, longest))
	}
	b.service.world.after(took, a, workDone, 0)
}

// workDone frees a worker and continues the request.
func (b *backend) workDone(a *attempt) {
	b.busy--
	b.service.counts.served++
	b.service.fillCache(a)
	b.fillWorkers()
	if a.call == nil {
		b.service.counts.wasted++
		return
	}
	switch {
	case a.fails != nil:
		a.reply(a.fails)
	case a.slow != nil:
		b.service.world.after(b.service.drawTime(a.slow), a, waitDone, 0)
	default:
		a.proceed()
	}
}

// fillWorkers gives waiting requests to free workers.
func (b *backend) fillWorkers() {
	for b.busy < b.faults.workers && len(b.queue) > 0 {
		a := b.takeNext()
		a.queued = false
		if a.call == nil && b.service.drops {
			b.dropped--
			continue
		}
		if b.waitedTooLong(a) {
			b.service.counts.refused++
			a.reply(b.service.queueFull)
			continue
		}
		b.serve(a)
	}
}

// faultsFor returns the faults that a request meets.
func (b *backend) faultsFor(a *attempt) *faults {
	if f := b.byMethod[a.link.spec.Method]; f != nil {
		return f
	}
	return &b.faults
}

// waitedTooLong reports whether the backend refuses a request that was taken from the queue; see [CoDel].
func (b *backend) waitedTooLong(a *attempt) bool {
	spec, now := b.service.spec.CoDel, b.service.world.now
	if spec == nil {
		return false
	}
	limit := spec.Interval
	if now-b.empty > spec.Interval {
		limit = spec.Target
	}
	if len(b.queue) == 0 {
		b.empty = now
	}
	return now-a.since > limit
}

// takeNext removes the next request from the queue, which must not be empty.
func (b *backend) takeNext() *attempt {
	i := 0
	if b.service.spec.Order == OrderLIFO {
		i = len(b.queue) - 1
	}
	a := b.queue[i]
	b.queue[i] = nil // the array outlives it
	if i == 0 {
		b.queue = b.queue[1:]
	} else {
		b.queue = b.queue[:i]
	}
	return a
}

// dropAbandoned drops a queued request whose client has left. The queue's length changes immediately; the memory is freed when
// most requests are dropped ones, since a queue that serves the newest rarely reaches its end.
func (b *backend) dropAbandoned() {
	b.dropped++
	b.service.counts.dropped++
	if b.dropped > 64 && b.dropped > len(b.queue)/2 {
		b.queue = slices.DeleteFunc(b.queue, func(a *attempt) bool { return a.call == nil })
		b.dropped = 0
	}
}

// pickBackend returns the backend of the call's next attempt: the next one of its connection. If retries go elsewhere, a later attempt
// chooses among the connection's next ones, as package elsewhere does.
func (c *call) pickBackend() *backend {
	l := c.link
	from := l.connectionOf(c.client)
	first := l.nextBackend(from)
	if !l.elsewhere || c.tried.ClaimFirst(first) {
		return first
	}
	picks := append(make([]*backend, 0, tried.MaxPicks), first)
	chosen := c.tried.Search(first, len(l.to.backends), l.picks.IntN, func() (*backend, bool) {
		next := l.nextBackend(from)
		picks = append(picks, next)
		return next, true
	})
	return picks[chosen]
}

// retriesElsewhere reports whether a policy file sends retries to another backend. As in gRPC, the first known policy of a
// list counts; the simulator knows only those that it can play.
func retriesElsewhere(set *methods.Set) (bool, error) {
	channel, at := set.Compiled().Channel(), set.Compiled().ChannelAt[spec.BalancingKey]
	config := balancing.Config(channel)
	if config == "" {
		return false, nil
	}
	refuse := func(what string) (bool, error) {
		at.Message = fmt.Sprintf("the simulator supports round_robin, and %s around it; %s", balancing.Policy, what)
		return false, fmt.Errorf("sim: %s", at)
	}
	type entry map[string]struct{ ChildPolicy []map[string]any }
	var list []entry
	if err := json.Unmarshal([]byte(config), &list); err != nil {
		return refuse(err.Error())
	}
	for _, one := range list {
		for name, inside := range one {
			switch name {
			case roundRobin:
				return false, nil
			case balancing.Policy:
				for _, child := range inside.ChildPolicy {
					if _, plays := child[roundRobin]; plays {
						return true, nil
					}
				}
				return refuse("its childPolicy lists no round_robin")
			}
		}
	}
	return refuse("the list has neither at its top")
}

const roundRobin = "round_robin"
