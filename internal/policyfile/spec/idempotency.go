// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/header"
)

// IdempotencyOf returns the idempotency that applies to a name: what its entry says, else the file. Only a name with a method
// declares it idempotent by itself, because an author who names a whole service doesn't think of each of its methods.
func IdempotencyOf(entry, file, name string) string {
	switch {
	case cmp.Or(entry, file) != "":
		return cmp.Or(entry, file)
	case namesMethod(name):
		return "ASSUME"
	default:
		return "DECLARED"
	}
}

// checkIdempotencyKey checks the header for the key. In some headers no server gets a key, and the calls would count as idempotent.
func checkIdempotencyKey(report *document.Report, prefix string, s Policy) {
	field := prefix + "idempotencyKey.header"
	if s.IdempotencyKey == "" && !report.Written(field) {
		return
	}
	if why := header.Unfit(s.IdempotencyKey); why != "" {
		report.Errorf(field, s.IdempotencyKey, "%s", why)
	}
	if s.Idempotency == "NONE" {
		report.Errorf(prefix+"idempotencyKey", nil, "cannot be combined with idempotency NONE: a key declares the methods idempotent")
	}
}
