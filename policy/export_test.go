// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// LintWith is [Lint] with options.
var LintWith = lint

// ParseDescriptors does what LoadDescriptors does after reading the file.
var ParseDescriptors = parseDescriptors

// The functions of package inside.
var (
	LoadDescriptors    = loadDescriptors
	ParseServiceConfig = parseServiceConfig
	Watch              = watch
)

// DeclaredIdempotent is that of package inside.
func (s *Set) DeclaredIdempotent(method string) bool { return s.descriptors.safe(method) }
