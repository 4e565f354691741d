// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/inside"
)

func init() {
	inside.Admission = func(set any) []Diagnostic {
		s, _ := set.(*Set)
		return slices.Clone(s.admissionAt)
	}
	inside.Channel = func(set any) (string, Diagnostic) {
		s, _ := set.(*Set)
		return s.config.channel.text(), s.balancingAt
	}
	inside.Config = func(set any) any {
		s, _ := set.(*Set)
		return &s.config
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
