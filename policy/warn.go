// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// warnNotDone warns of what a file may say but stagger does not carry out.
func warnNotDone(ps *problems) {
	for _, key := range []string{"loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig", "connectionScaling"} {
		if ps.written(key) {
			ps.add(key, nil, "belongs to the channel and has no effect here: pass it to gRPC, "+
				"with grpc.WithDefaultServiceConfig or from the resolver")
		}
	}
}
