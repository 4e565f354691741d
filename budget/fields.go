// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "github.com/stagger-go/stagger/internal/bounds"

// init gives the packages of this module the fields of a config: programs can't name their type.
func init() {
	bounds.OfBudget = func(config any) []bounds.Field {
		c, _ := config.(Config)
		return c.fields()
	}
}
