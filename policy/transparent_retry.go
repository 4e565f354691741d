// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Permission is whether a policy allows something. The zero value leaves it to the [Config], and there means [Allow].
type Permission uint8

// The permissions.
const (
	Allow Permission = iota + 1
	Deny
)

// String spells the permission as a policy file does.
func (p Permission) String() string {
	return spelling(policyv1.TransparentRetry(cmp.Or(p, Allow)))
}

// lintTransparentRetry says if an entry denies transparent retries to methods that it declares safe, all of them.
func lintTransparentRetry(report *document.Report, path string, m MethodConfig, c Config) {
	if m.TransparentRetry == Deny && m.declaresSafe(c.Idempotency) {
		report.Warnf(path+".transparentRetry", m.TransparentRetry, forUndeclared)
	}
}

const forUndeclared = "has no effect: it is for methods that nobody declares safe to repeat, and the entry declares its methods safe; " +
	"if they are not, add \"idempotency: NONE\" to it"
