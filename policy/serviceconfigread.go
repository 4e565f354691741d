// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/stagger-go/stagger/internal/document"

// ParseServiceConfig reads a service config in JSON that a resolver has delivered to a connection. It differs
// from [Parse] in what gRPC does with such a config: methods count as safe to repeat unless an entry says
// otherwise, since gRPC itself would repeat them; and what gRPC carries out by itself (waitForReady, the
// limits of messages, load balancing) is left to it, without warning. The error is an [*Error]; gRPC may
// accept what is refused here, such as unknown keys.
func ParseServiceConfig(data []byte) (*Set, error) {
	report := document.NewReport("service config")
	f := read(report, data)
	if f == nil {
		return nil, report.Err()
	}
	config := convert(report, f)
	if config.Idempotency == IdempotencyByName {
		config.Idempotency = IdempotencyAssume
	}
	for i := range config.Methods {
		m := &config.Methods[i]
		m.WaitForReady, m.MaxRequestBytes, m.MaxResponseBytes = nil, nil, nil
	}
	return newSet(config, report)
}

// Configured reports whether a policy of the set comes from its config, and not with an API
// ([Set.WithDescriptors]).
func (s *Set) Configured(p *Policy) bool {
	return p.index >= 0 && p.index < len(s.configured()) && s.policies[p.index] == p
}
