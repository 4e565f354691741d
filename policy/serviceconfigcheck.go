// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// checkChannel refuses what gRPC refuses of the keys that only it carries out: the file is for it too.
func checkChannel(report *document.Report, c channel) {
	for i, one := range c.config {
		field := document.Item("loadBalancingConfig", i)
		entry, ok := one.(map[string]any)
		if !ok || len(entry) != 1 {
			report.Errorf(field, nil, "must be a map with one key, a load balancing policy, such as {round_robin: {}}")
			continue
		}
		for name, config := range entry {
			if _, ok := config.(map[string]any); !ok {
				report.Errorf(document.Under(field, name), nil, "must be a map of the policy's settings; {} for none")
			}
		}
	}
	if name, ok := c.health["serviceName"].(string); !ok && c.health["serviceName"] != nil {
		report.Errorf("healthCheckConfig.serviceName", name, "must be the name of the service that is asked for its health; put it in quotes")
	}
}

// warnSpelling warns of codes that gRFC A6 lets a file spell, but gRPC for Go does not know: it refuses the
// whole file. It reads no codes but those of a retryPolicy.
func warnSpelling(report *document.Report, f *policyv1.PolicyFile) {
	for i, m := range f.GetMethodConfig() {
		field := document.Item("methodConfig", i) + ".retryPolicy.retryableStatusCodes"
		for j := range m.GetRetryPolicy().GetRetryableStatusCodes() {
			n := report.Node(document.Item(field, j))
			if n == nil || n.Kind != document.Text {
				continue
			}
			name := strings.ToUpper(n.Text)
			if name == "CANCELED" {
				name = "CANCELLED"
			}
			if name != n.Text {
				report.Warnf(document.Item(field, j), n.Text, "gRPC for Go refuses a service config with this spelling; write %s", name)
			}
		}
	}
}
