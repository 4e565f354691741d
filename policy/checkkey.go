// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// checkIdempotencyKey checks the header that carries a key. gRPC would refuse every call that sets one
// which HTTP/2 does not allow.
func checkIdempotencyKey(report *document.Report, path string, s Spec) {
	header, field := s.IdempotencyKey, path+"idempotencyKey.header"
	switch {
	case header == "" && report.Written(field):
		report.Errorf(field, "", "must be a header, such as %s", DefaultIdempotencyHeader)
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
	if s.Idempotency == IdempotencyNone {
		report.Errorf(path+"idempotencyKey", nil, "must not stand beside idempotency NONE: a key declares the methods safe to repeat")
	}
}

func checkOverride(report *document.Report, path string, o CodeOverride) {
	checkCodes(report, path+"codes", o.Codes)
	switch {
	case o.As == 0 && report.Whole(path+"as"):
		report.Errorf(path+"as", nil, "must be the code that the failure counts as, such as UNAVAILABLE")
	case o.As > maxCode:
		report.Errorf(path+"as", uint32(o.As), "must be a code that gRPC defines (1 to %d)", maxCode)
	}
}
