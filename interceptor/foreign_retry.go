// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"reflect"
	"strings"

	"google.golang.org/grpc"
)

// Retries of other libraries on the same connection multiply with ours. Those of an inner interceptor are seen as attempts that
// end twice (attemptOptions.end), those of an outer one by what it passes in (outerRetries).

// middleware is the library whose retries stand on most connections.
const middleware = "github.com/grpc-ecosystem/go-grpc-middleware"

// ofForeignRetries reports whether a call option is one of go-grpc-middleware's retries, of any version.
func ofForeignRetries(option grpc.CallOption) bool {
	t := reflect.TypeOf(option)
	if t == nil {
		return false
	}
	path := t.PkgPath()
	return strings.HasPrefix(path, middleware+"/") && strings.HasSuffix(path, "/retry")
}
