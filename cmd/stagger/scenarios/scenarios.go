// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenarios has the scenarios that are built into "stagger simulate", and their policy files.
package scenarios

import "embed"

// Files are the scenarios, NAME.yaml, and their policy files, in the folder policy.
//
//go:embed *.yaml policy/*.yaml
var Files embed.FS
