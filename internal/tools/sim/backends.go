// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tried"
)

// pick chooses the backend of the call's next attempt: its connection's next. Where retries go to another backend, it
// is the next that the call did not go to.
func (c *call) pick() *backend {
	l := c.link
	first := l.pick(c.client)
	if !l.elsewhere || c.tried.Claim(first) {
		return first
	}
	picks := append(make([]*backend, 0, tried.MaxPicks), first)
	chosen := c.tried.Search(first, len(l.to.backends), func() (*backend, bool) {
		next := l.pick(c.client)
		picks = append(picks, next)
		return next, true
	})
	return picks[chosen]
}

// retriesElsewhere reports whether a policy file lets retries go to another backend. As in gRPC, the first policy of a
// list that is known counts; and known are only those that the simulator plays.
func retriesElsewhere(set *decision.Set) (bool, error) {
	config, at := set.LoadBalancing()
	if config == "" {
		return false, nil
	}
	refuse := func(what string) (bool, error) {
		at.Message = fmt.Sprintf("the simulator plays round_robin, and %s around it; %s", tried.Balancer, what)
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
			case tried.Balancer:
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
