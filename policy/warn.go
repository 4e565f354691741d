// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// warnFile warns of what a file may say and stagger does not carry out, and of what gRPC for Go does not read.
func warnFile(report *document.Report, f *policyv1.PolicyFile) {
	warnNotDone(report)
	warnSpelling(report, f)
}

func warnNotDone(report *document.Report) {
	for _, key := range []string{"loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig", "connectionScaling"} {
		if report.Written(key) {
			report.Warnf(key, nil, "belongs to the channel and has no effect here: pass it to gRPC, "+
				"with grpc.WithDefaultServiceConfig or from the resolver")
		}
	}
}
