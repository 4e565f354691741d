// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// LintWith is [Lint] with options.
var LintWith = lint

// ParseDescriptors is what LoadDescriptors does with what it has read.
var ParseDescriptors = parseDescriptors

// What package inside has.
var (
	LoadDescriptors    = loadDescriptors
	ParseServiceConfig = parseServiceConfig
	Watch              = watch
)

// DeclaredIdempotent is that of package inside.
func (s *Set) DeclaredIdempotent(method string) bool { return s.descriptors.safe(method) }
