// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"google.golang.org/grpc/codes"
)

func TestCodeFlag(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]codes.Code{
		"UNAVAILABLE": codes.Unavailable, "unavailable": codes.Unavailable, "8": codes.ResourceExhausted,
		"CANCELLED": codes.Canceled, "canceled": codes.Canceled, "NotFound": codes.NotFound,
	} {
		var got codes.Code
		if err := (codeValue{&got}).Set(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"OK", "0", "17", "014", "UNAVAILABEL", ""} {
		if err := (codeValue{new(codes.Code)}).Set(name); err == nil {
			t.Errorf("%q is taken for a code", name)
		}
	}
}
