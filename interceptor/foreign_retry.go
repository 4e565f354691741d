// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"reflect"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Retries of other libraries on the same connection multiply with ours. Nobody sees them as such: those of an inner
// interceptor are seen as attempts that end twice (attemptOptions.end), those of an outer one by the header that
// go-grpc-middleware's send.

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

// outerRetry reports whether a call is a retry of go-grpc-middleware's, version 2 or 1.
func outerRetry(ctx context.Context) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	return len(md["x-retry-attempt"]) > 0 || len(md["x-retry-attempty"]) > 0
}
