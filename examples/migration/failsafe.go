// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Failsafe is a client with failsafe-go.
func Failsafe() Client { return Client{dialFailsafe, get, create} }

func dialFailsafe(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	policy := failsafegrpc.NewRetryPolicyBuilder[any]().
		HandleIf(func(_ any, err error) bool { return status.Code(err) == codes.Unavailable }).
		WithMaxAttempts(4).
		WithBackoff(100*time.Millisecond, time.Second).
		WithJitterFactor(0.2).
		ReturnLastFailure().
		Build()
	return grpc.NewClient(target, append(opts, grpc.WithUnaryInterceptor(failsafegrpc.NewUnaryClientInterceptor(policy)))...)
}
