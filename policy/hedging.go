// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"

// checkHedging checks the hedging policies of a file. A config has none: they are not carried out
// yet.
func checkHedging(ps *problems, f *policyv1.PolicyFile) {
	for i, m := range f.GetMethodConfig() {
		h := m.GetHedgingPolicy()
		if h == nil {
			continue
		}
		path := under(item("methodConfig", i), "hedgingPolicy")
		checkAttempts(ps, under(path, "maxAttempts"), toInt(h.GetMaxAttempts()))
		if d := h.GetHedgingDelay().AsDuration(); d < 0 {
			ps.add(under(path, "hedgingDelay"), d, "must not be negative; 0s sends all attempts at once")
		}
	}
}

// warnNotDone warns of what a file may say but stagger does not carry out.
func warnNotDone(ps *problems, f *policyv1.PolicyFile) {
	for i, m := range f.GetMethodConfig() {
		if m.GetHedgingPolicy() != nil {
			ps.add(under(item("methodConfig", i), "hedgingPolicy"), nil,
				"hedging is not carried out yet: the methods of this entry have one attempt")
		}
	}
	for _, key := range []string{"loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig", "connectionScaling"} {
		if ps.written(key) {
			ps.add(key, nil, "belongs to the channel and has no effect here: pass it to gRPC, "+
				"with grpc.WithDefaultServiceConfig or from the resolver")
		}
	}
}
