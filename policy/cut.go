// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cuts are gRPC's own texts for Go, with the code INTERNAL, about streams that ended without a status: a proxy or a
// server that is no gRPC server has cut them. They are failures of the transport, which are UNAVAILABLE elsewhere.
// "unexpected EOF" is not among them, since servers say that of other things, too.
var cuts = []string{
	"server closed the stream without sending trailers",
	"stream terminated by RST_STREAM with error code: NO_ERROR",
	"stream terminated by RST_STREAM with error code: INTERNAL_ERROR", // nginx, when the server behind it has gone
}

func isCut(st *status.Status) bool {
	return st.Code() == codes.Internal && slices.ContainsFunc(cuts, func(text string) bool { return strings.Contains(st.Message(), text) })
}

// codeOfCut is the code that a cut counts as: INTERNAL if the policy has settings for that, else UNAVAILABLE if it
// lists that.
func (p *Policy) codeOfCut() codes.Code {
	own := slices.ContainsFunc(p.retry.PerCode, func(c CodeSpec) bool { return c.Codes.Has(codes.Internal) })
	if own || !p.retry.Codes.Has(codes.Unavailable) {
		return codes.Internal
	}
	return codes.Unavailable
}
