// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
)

// Steps returns the dial options of a program that is about to replace an old interceptor. oldRetries is a flag of the program: true while
// stagger only observes, and false in the instances that enforce. With both, attempts would multiply.
func Steps(retrier *interceptor.Retrier, oldRetries bool, oldRetry grpc.UnaryClientInterceptor) []grpc.DialOption {
	options := retrier.DialOptions()
	if oldRetries { // a flag: true while stagger only observes
		options = []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(oldRetry, retrier.Unary()), // without oldRetry if the old retries are gRPC's own
			grpc.WithChainStreamInterceptor(retrier.Stream()),
		}
	}
	return options
}
