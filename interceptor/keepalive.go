// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"google.golang.org/grpc/keepalive"
)

// By default, gRPC servers close connections that are pinged more often than every 5 minutes while no data is sent.
var slowKeepalive = keepalive.ClientParameters{Time: 6 * time.Minute, Timeout: 20 * time.Second}

// WithKeepalive makes [Retrier.DialOptions] set a keepalive that every gRPC server accepts: a ping after 6 minutes
// without received data while calls run, and a timeout of 20 s for its answer. On Linux, gRPC then also sets the
// connection's TCP_USER_TIMEOUT to 20 s. So a connection whose peer has vanished is dropped 20 s after data was sent. Without it,
// calls can hang on such a connection for up to 16 minutes, until TCP gives up.
//
// It is off by default because a Retrier cannot see whether other options set a keepalive. gRPC uses the last one
// given. Ping more often only if the servers have a [keepalive.EnforcementPolicy] that allows it. Other servers close the
// connection (GOAWAY, too_many_pings).
func WithKeepalive() Option {
	return func(r *Retrier) error {
		r.keepalive = true
		return nil
	}
}
