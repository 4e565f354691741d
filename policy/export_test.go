// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// LintWith is [Lint] with options.
var LintWith = lint

// ParseDescriptors is what [LoadDescriptors] does with what it has read.
var ParseDescriptors = parseDescriptors
