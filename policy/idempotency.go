// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"strings"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
)

// resolve returns the idempotency that applies to a name. Only a name with a method declares it idempotent by itself, because
// an author who names a whole service doesn't think of each of its methods.
func resolve(entry, file, name string) string {
	switch {
	case cmp.Or(entry, file) != "":
		return cmp.Or(entry, file)
	case namesMethod(name):
		return "ASSUME"
	default:
		return "DECLARED"
	}
}

// checkIdempotencyKey checks the header for the key. gRPC would reject every call with a header that HTTP/2 does not allow.
func checkIdempotencyKey(report *document.Report, prefix string, s Spec) {
	header, field := s.IdempotencyKey, prefix+"idempotencyKey.header"
	switch {
	case header == "" && report.Written(field):
		report.Errorf(field, "", "must be a header, such as %s", defaults.IdempotencyHeader)
		return
	case header == "":
		return
	case strings.Trim(header, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		report.Errorf(field, header, "must have only lower-case letters, digits, \"-\", \"_\" and \".\"")
	case strings.HasPrefix(header, "grpc-"):
		report.Errorf(field, header, "must not begin with grpc-, which gRPC keeps for itself")
	case strings.HasSuffix(header, "-bin"):
		report.Errorf(field, header, "must not end with -bin: the key is text")
	}
	if s.Idempotency == "NONE" {
		report.Errorf(prefix+"idempotencyKey", nil, "cannot be combined with idempotency NONE: a key declares the methods idempotent")
	}
}
