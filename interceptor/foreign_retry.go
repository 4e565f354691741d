// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"strings"

	"google.golang.org/grpc"
)

// Retries of other libraries on the same connection multiply with ours. We detect those of an inner interceptor by attempts that
// end twice (attemptOptions.end), and those of an outer one by repeated requests (outerRetries).

// middleware is the most common library with retries.
const middleware = "github.com/grpc-ecosystem/go-grpc-middleware"

// ofForeignRetries reports whether a call option belongs to the retries of go-grpc-middleware, in any version.
func ofForeignRetries(option grpc.CallOption) bool {
	t := reflect.TypeOf(option)
	if t == nil {
		return false
	}
	path := t.PkgPath()
	return strings.HasPrefix(path, middleware+"/") && strings.HasSuffix(path, "/retry")
}
