// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulate has scenarios for the simulator, and their policy files.
package simulate

import "embed"

// Files are the scenarios, NAME.yaml, and their policy files, in the folder policy.
//
//go:embed *.yaml policy/*.yaml
var Files embed.FS
