// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

func init() {
	inside.Admission = func(set any) []Diagnostic {
		s, _ := set.(*Set)
		return slices.Clone(s.admissionAt)
	}
	inside.NewSet = func(c spec.Config) (any, error) { return newSet(c, &document.Report{}) }
	inside.NewPolicy = func(s spec.Policy) (any, error) {
		var report document.Report
		spec.CheckPolicy(&report, "", s)
		if err := report.Err(); err != nil {
			return (*Policy)(nil), err
		}
		return newPolicy(s), nil
	}
	inside.Config = func(set any) *spec.Config {
		s, _ := set.(*Set)
		return &s.config
	}
	inside.Spec = func(policy any) *spec.Policy {
		p, _ := policy.(*Policy)
		return &p.spec
	}
	inside.Retry = func(policy any) *spec.Retry {
		p, _ := policy.(*Policy)
		return &p.retry
	}
	inside.Declares = func(policy any, method string) bool {
		p, _ := policy.(*Policy)
		return p.set == nil || p.set.Lookup(method) == p
	}
	inside.Channel = func(set any) (string, Diagnostic) {
		s, _ := set.(*Set)
		return s.config.Channel(), s.channelAt[spec.BalancingKey]
	}
	inside.KeyPlace = func(set any, key string) Diagnostic {
		s, _ := set.(*Set)
		return s.channelAt[key]
	}
	inside.Elsewhere = func(set any) Diagnostic {
		s, _ := set.(*Set)
		return s.elsewhereAt
	}
	inside.Place = func(set any, name string) Diagnostic {
		s, _ := set.(*Set)
		return s.namesAt[name]
	}
}
