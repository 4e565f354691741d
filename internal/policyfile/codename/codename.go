// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package codename has the names of status codes as gRPC's documents and all our files spell them: UNAVAILABLE.
package codename

import (
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

// Of returns the name of a code, or its number if gRPC does not define it.
func Of(c codes.Code) string {
	if c > codes.Unauthenticated {
		return strconv.FormatUint(uint64(c), 10)
	}
	return code.Code(c).String()
}

// List returns the names of codes: "RESOURCE_EXHAUSTED, UNAVAILABLE".
func List(list []codes.Code) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = Of(c)
	}
	return strings.Join(names, ", ")
}

// Failures returns the names of all codes except OK.
func Failures() []string {
	var names []string
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		names = append(names, Of(c))
	}
	return names
}

// Parse reads the code of a failure: its name, in any case and also as Go spells it, or its number.
func Parse(text string) (codes.Code, bool) {
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(text, Of(c)) || strings.EqualFold(text, c.String()) || text == strconv.Itoa(int(c)) {
			return c, true
		}
	}
	return codes.OK, false
}
