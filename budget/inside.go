// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "github.com/stagger-go/stagger/internal/bounds"

func init() {
	bounds.Of = func(config any) []bounds.Field {
		c, _ := config.(Config)
		return c.fields()
	}
}
