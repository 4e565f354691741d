// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/budget"
)

// wait lets a backoff pass. It returns early when the caller cancels or the connection is closed.
func (c *oldCall) wait(delay time.Duration) {
	before := budget.Now()
	c.sleep(delay)
	c.waited += budget.Now() - before
}

// sleep returns after delay, or when the call's context ends or its connection is closed.
func (c *oldCall) sleep(delay time.Duration) {
	if delay <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, delay)
	defer cancel()
	if c.cc == nil {
		<-ctx.Done()
		return
	}
	for {
		state := c.cc.GetState()
		if state == connectivity.Shutdown || !c.cc.WaitForStateChange(ctx, state) {
			return
		}
	}
}
