// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/stagger-go/stagger/internal/tried"
)

// picker lets the child pick for a call's first attempt. For a later one, it chooses among several picks of the child.
type picker struct {
	child balancer.Picker
	ready int       // the maximum number of backends that the child picks from
	down  time.Time // since when the channel can't connect, or zero
	of    *policy
}

func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	first, err := p.child.Pick(info)
	r := recordOf(info.Ctx)
	if r != nil {
		r.picker.Store(p)
	}
	if err != nil {
		return first, err
	}
	if r == nil || r.tried.ClaimFirst(first.SubConn) {
		return first, nil
	}
	return p.pickOther(info, r, first), nil
}

// pickOther picks again for a later attempt. It holds all picks to the end: if it released them one by one, a policy that counts
// requests (least_request) would again find the same backend the least loaded.
//
// An error of the child ends the search. It isn't returned, because the call can use a held backend, and ErrNoSubConnAvailable
// would make the call wait.
func (p *picker) pickOther(info balancer.PickInfo, r *record, first balancer.PickResult) balancer.PickResult {
	held := append(make([]balancer.PickResult, 0, tried.MaxPicks), first)
	chosen := r.tried.Search(first.SubConn, p.ready, rand.IntN, func() (balancer.SubConn, bool) {
		pick, err := p.child.Pick(info)
		if err != nil {
			return nil, false
		}
		held = append(held, pick)
		return pick.SubConn, true
	})
	for i, pick := range held {
		if i != chosen && pick.Done != nil {
			pick.Done(balancer.DoneInfo{}) // as gRPC does with an unused pick
		}
	}
	return held[chosen]
}
