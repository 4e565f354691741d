// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
)

// outages are the connections that cannot connect, and since when. An outage begins when a call first sees the channel
// in TRANSIENT_FAILURE, and is over when the channel is usable, idle or closed: a goroutine follows it until then. So a
// connection that works costs nothing, and none is kept that is gone.
type outages struct {
	since sync.Map      // time.Duration by *grpc.ClientConn
	bound time.Duration // in tests, in place of attempts.MaxOutage
	share float64       // in tests, in place of inboundShare
}

// inboundShare is the part of the time to the deadline of an incoming call that the calls made in it wait for a connection.
// The rest is for the caller above, who may do without, or ask elsewhere. TestOutage_Inbound has the table that it was chosen by.
const inboundShare = 0.75

// longestWait is how long a call waits for a connection.
func (o *outages) longestWait(ctx context.Context, p *decision.Policy) time.Duration {
	wait := p.MaxConnectionWait()
	deadline, limited := ctx.Deadline()
	if !limited || inbound(ctx) == nil {
		return wait
	}
	return min(wait, time.Duration(cmp.Or(o.share, inboundShare)*float64(time.Until(deadline))))
}

// maxOutage is how long a connection has not been usable when the calls of a policy stop waiting for it.
func (o *outages) maxOutage(p *decision.Policy) time.Duration {
	return cmp.Or(o.bound, attempts.MaxOutage(p.MaxConnectionWait()))
}

// look reports whether a connection cannot connect, and for how long that has been so. The time is on the budgets' clock.
func (o *outages) look(cc *grpc.ClientConn, at time.Duration) (down bool, age time.Duration) {
	if cc == nil || cc.GetState() != connectivity.TransientFailure {
		return false, 0
	}
	since, known := o.since.Load(cc)
	if !known {
		if since, known = o.since.LoadOrStore(cc, at); !known {
			go o.follow(cc)
		}
	}
	began, _ := since.(time.Duration)
	return true, max(at-began, 0)
}

// follow forgets the outage of a connection when it is over.
func (o *outages) follow(cc *grpc.ClientConn) {
	defer o.since.Delete(cc)
	for {
		state := cc.GetState()
		lasts := state == connectivity.TransientFailure || state == connectivity.Connecting
		if !lasts || !cc.WaitForStateChange(context.Background(), state) {
			return
		}
	}
}
