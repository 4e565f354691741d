// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// reasons counts why failed calls got no other attempt. The zero value is ready.
type reasons struct {
	mu    sync.Mutex
	count map[policy.Reason]int // guarded by mu
}

func (r *reasons) observer() interceptor.Observer {
	return interceptor.Observer{
		Call: func(_ context.Context, e interceptor.Event) {
			if e.Err != nil {
				r.add(e.Reason)
			}
		},
		// The policy's warnings have their place in "stagger lint"; here they would break the screen.
		Warning: func(policy.Diagnostic) {},
	}
}

func (r *reasons) add(reason policy.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[policy.Reason]int{}
	}
	r.count[reason]++
}

// String lists the reasons, one a line, the most frequent first.
func (r *reasons) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.SortedFunc(maps.Keys(r.count), func(a, b policy.Reason) int {
		return cmp.Or(cmp.Compare(r.count[b], r.count[a]), cmp.Compare(a, b))
	})
	var lines strings.Builder
	for _, reason := range list {
		fmt.Fprintf(&lines, "  %5d  %s\n", r.count[reason], reason)
	}
	return lines.String()
}
