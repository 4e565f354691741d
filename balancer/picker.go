// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package balancer

import "google.golang.org/grpc/balancer"

// maxPicks bounds the picks for one attempt. A policy that picks one of four backends at random, three of which the
// call went to, names the fourth with probability 0.9999 by then.
const maxPicks = 32

// picker repeats the child's picks until one is a backend that the call did not go to.
type picker struct {
	child balancer.Picker
	ready int // the backends that the child picks from, at most
}

func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	first, err := p.child.Pick(info)
	if err != nil {
		return first, err
	}
	r := recordOf(info.Ctx)
	if r == nil || r.claim(first.SubConn) {
		return first, nil
	}
	return p.pickOther(info, r, first), nil
}

// pickOther picks on after a pick of a backend that the call went to. Picks are held to the end: if they were given back
// one by one, a policy that counts requests (least_request) would find the same backend the least loaded again.
//
// An error of the child ends the search. It is not the call's, which could go to a backend that is held; and
// ErrNoSubConnAvailable would make the call wait.
func (p *picker) pickOther(info balancer.PickInfo, r *record, first balancer.PickResult) balancer.PickResult {
	held := append(make([]balancer.PickResult, 0, maxPicks), first)
	backends, chosen := 1, -1
	for chosen < 0 && backends < p.ready && len(held) < maxPicks {
		pick, err := p.child.Pick(info)
		if err != nil {
			break
		}
		if r.claim(pick.SubConn) {
			chosen = len(held)
		} else if !contains(held, pick.SubConn) {
			backends++
		}
		held = append(held, pick)
	}
	if chosen < 0 {
		chosen = r.claimOldest(held)
	}
	for i, pick := range held {
		if i != chosen && pick.Done != nil {
			pick.Done(balancer.DoneInfo{}) // as gRPC does with a pick that it does not use
		}
	}
	return held[chosen]
}

func contains(picks []balancer.PickResult, backend balancer.SubConn) bool {
	for _, pick := range picks {
		if pick.SubConn == backend {
			return true
		}
	}
	return false
}
