// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/document"
)

// mostViolations go into one status: many clients take no more than 8 KiB of trailers.
const mostViolations = 8

// invalid is what a client of the control service gets for a request with errors; nil for one without.
func invalid(report *document.Report) error {
	list := report.Errors()
	if len(list) == 0 {
		return nil
	}
	shown := list[:min(len(list), mostViolations)]
	text := (&document.Error{Diagnostics: shown}).Error()
	if more := len(list) - len(shown); more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	var details errdetails.BadRequest
	for _, d := range shown {
		field := d.Field
		d.Field = ""
		details.FieldViolations = append(details.FieldViolations,
			&errdetails.BadRequest_FieldViolation{Field: field, Description: d.String()})
	}
	st := status.New(codes.InvalidArgument, text)
	if full, err := st.WithDetails(&details); err == nil { // fails for OK only
		st = full
	}
	return st.Err()
}
