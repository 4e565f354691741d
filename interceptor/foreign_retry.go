// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"reflect"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
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

// warnInnerRetries reports, once, that an inner interceptor has made one attempt more than once.
func (r *Retrier) warnInnerRetries() {
	if r.warned.first("inner retries") {
		r.warn(policy.Diagnostic{Field: "inner interceptor", Message: "has made one attempt more than once; if it retries, as go-grpc-middleware's " +
			"does, attempts multiply, and neither budget nor safety holds for its own: take it out"})
	}
}

// warnOuterRetries reports, once, that a call is a retry of an outer interceptor's, and has failed again.
func (r *Retrier) warnOuterRetries(ctx context.Context) {
	if outerRetry(ctx) && r.warned.first("outer retries") {
		r.warn(policy.Diagnostic{Field: "outer interceptor", Message: "go-grpc-middleware's retries call the Retrier again for each of their attempts: " +
			"attempts multiply, and neither budget nor safety holds for its own; take it out"})
	}
}

// warnForeignOptions reports, once for each method, call options of go-grpc-middleware's retries.
func (r *Retrier) warnForeignOptions(method string) {
	if r.warned.first("foreign options " + method) {
		r.warn(policy.Diagnostic{Field: "call option", Value: method, Message: "calls carry options of go-grpc-middleware's retries, which mean nothing to " +
			"a Retrier: with Disable() or WithMax(1) too, a call is repeated as its policy says; interceptor.MaxAttempts(1) forbids that, " +
			"interceptor.Policy changes it"})
	}
}
