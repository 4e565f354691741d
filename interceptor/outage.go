// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/attempts"
)

// outages has the connections that cannot connect, and since when a call first saw them in TRANSIENT_FAILURE, because gRPC tells no
// times. A connection with the policy of package elsewhere tells its calls more ([balancing.Hook]): see [call.now]. An outage is
// over when the channel is usable, idle or closed; a goroutine watches it until then. So working connections cost nothing, and
// closed ones are not kept.
type outages struct {
	since sync.Map // time.Duration by *grpc.ClientConn
}

// look records whether a connection is closed, or cannot connect, and for how long. It asks gRPC once, which takes a lock.
func (o *outages) look(cc *grpc.ClientConn, now *attempts.Now) {
	if cc == nil {
		return
	}
	state := cc.GetState()
	now.Closed, now.Down = state == connectivity.Shutdown, state == connectivity.TransientFailure
	now.Connecting = state == connectivity.Connecting || state == connectivity.Idle
	if !now.Down {
		return
	}
	since, known := o.since.Load(cc)
	if !known {
		since, known = o.since.LoadOrStore(cc, now.At)
		if !known {
			go o.removeWhenOver(cc)
		}
	}
	began, _ := since.(time.Duration)
	now.Outage = max(now.At-began, 0)
}

// removeWhenOver waits for the end of a connection's outage, and removes it.
func (o *outages) removeWhenOver(cc *grpc.ClientConn) {
	defer o.since.Delete(cc)
	for s := cc.GetState(); s == connectivity.TransientFailure || s == connectivity.Connecting; s = cc.GetState() {
		cc.WaitForStateChange(context.Background(), s)
	}
}
