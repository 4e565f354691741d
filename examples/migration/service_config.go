// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import "google.golang.org/grpc"

// ServiceConfig is a client with gRPC's own retries.
func ServiceConfig() Client { return Client{dialServiceConfig, get, create} }

func dialServiceConfig(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append(opts, grpc.WithDefaultServiceConfig(`{"methodConfig": [{
		"name": [{"service": "acme.orders.v1.OrderService"}],
		"retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]}`))...)
}
