// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// checkChannel refuses what gRPC refuses of the keys that only it carries out: the file is for it too.
func checkChannel(ps *problems, c channel) {
	for i, one := range c.config {
		field := item("loadBalancingConfig", i)
		entry, ok := one.(map[string]any)
		if !ok || len(entry) != 1 {
			ps.add(field, nil, "must be a map with one key, a load balancing policy, such as {round_robin: {}}")
			continue
		}
		for name, config := range entry {
			if _, ok := config.(map[string]any); !ok {
				ps.add(under(field, name), nil, "must be a map of the policy's settings; {} for none")
			}
		}
	}
	if name, ok := c.health["serviceName"].(string); !ok && c.health["serviceName"] != nil {
		ps.add("healthCheckConfig.serviceName", name, "must be the name of the service that is asked for its health; put it in quotes")
	}
}

// warnSpelling warns of codes that gRFC A6 lets a file spell, but gRPC for Go does not know: it refuses the
// whole file. It reads no codes but those of a retryPolicy.
func warnSpelling(ps *problems, f *policyv1.PolicyFile) {
	for i, m := range f.GetMethodConfig() {
		field := under(item("methodConfig", i), "retryPolicy.retryableStatusCodes")
		for j := range m.GetRetryPolicy().GetRetryableStatusCodes() {
			n, ok := ps.root.find(item(field, j))
			if !ok || n.kind != text {
				continue
			}
			name := strings.ToUpper(n.text)
			if name == "CANCELED" {
				name = "CANCELLED"
			}
			if name != n.text {
				ps.add(item(field, j), n.text, "gRPC for Go refuses a service config with this spelling; write %s", name)
			}
		}
	}
}
