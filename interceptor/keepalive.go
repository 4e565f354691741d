// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc/keepalive"
)

// A server of gRPC's closes connections that are pinged more often than every 5 minutes while nothing is sent, unless it
// has an enforcement policy of its own.
var slowKeepalive = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}

// WithKeepalive has [Retrier.DialOptions] set a keepalive that every gRPC server accepts: a ping after 6 minutes in which
// nothing was received while calls run, and 20 s for its answer. On Linux, gRPC then gives the connection a TCP_USER_TIMEOUT
// of 20 s, so that a connection whose peer has vanished is dropped 20 s after something was sent; without it, calls can
// hang on such a connection for up to 16 minutes, until TCP gives up.
//
// It is off by default, since a Retrier cannot see whether other options set a keepalive. gRPC takes the last that it is
// given. Ping more often only if the servers have a [keepalive.EnforcementPolicy] that allows it: others close the
// connection (GOAWAY, too_many_pings).
func WithKeepalive() Option {
	return func(r *Retrier) error {
		r.keepalive = true
		return nil
	}
}
