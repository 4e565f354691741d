// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// checkIdempotencyKey checks the header that carries a key. gRPC would refuse every call that sets one
// which HTTP/2 does not allow.
func checkIdempotencyKey(ps *problems, path string, s Spec) {
	header, field := s.IdempotencyKey, path+"idempotencyKey.header"
	switch {
	case header == "" && ps.written(field):
		ps.add(field, "", "must be a header, such as %s", DefaultIdempotencyHeader)
		return
	case header == "":
		return
	case strings.Trim(header, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		ps.add(field, header, "must have only lower-case letters, digits, \"-\", \"_\" and \".\"")
	case strings.HasPrefix(header, "grpc-"):
		ps.add(field, header, "must not begin with grpc-, which gRPC keeps for itself")
	case strings.HasSuffix(header, "-bin"):
		ps.add(field, header, "must not end with -bin: the key is text")
	}
	if s.Idempotency == IdempotencyNone {
		ps.add(path+"idempotencyKey", nil, "must not stand beside idempotency NONE: a key declares the methods safe to repeat")
	}
}

func checkOverride(ps *problems, path string, o CodeOverride) {
	checkCodes(ps, path+"codes", o.Codes)
	switch {
	case o.As == 0 && ps.whole(path+"as"):
		ps.add(path+"as", nil, "must be the code that the failure counts as, such as UNAVAILABLE")
	case o.As > maxCode:
		ps.add(path+"as", uint32(o.As), "must be a code that gRPC defines (1 to %d)", maxCode)
	}
}
