// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "github.com/stagger-go/stagger/internal/bounds"

// Fields returns the fields of a config, with their bounds, for the packages of this module: the type of its result is internal.
func Fields(c Config) []bounds.Field { return c.fields() }
