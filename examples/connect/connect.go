// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package connect puts the calls of a client of connect-go under a policy of stagger.
package connect

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/interceptor"
)

// Interceptor retries the unary calls of a connect client by a Retrier's policies: give it to connect.WithInterceptors. target names the
// service that the client calls, for budget, breaker and metrics. Requests carry the attempt's number and the call's idempotency key, as those of
// gRPC do.
func Interceptor(retrier *interceptor.Retrier, target string, opts ...grpc.CallOption) connect.UnaryInterceptorFunc {
	opts = append([]grpc.CallOption{interceptor.Target(target), interceptor.StatusOf(statusOf)}, opts...)
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, request connect.AnyRequest) (response connect.AnyResponse, err error) {
			if !request.Spec().IsClient {
				return next(ctx, request)
			}
			err = retrier.Do(ctx, request.Spec().Procedure, func(ctx context.Context) (err error) {
				if md, ok := metadata.FromOutgoingContext(ctx); ok {
					for name, values := range md {
						request.Header()[http.CanonicalHeaderKey(name)] = values
					}
				}
				response, err = next(ctx, request)
				return err
			}, opts...)
			return response, err
		}
	}
}

// statusOf returns the status of a connect error. Its codes are gRPC's. A Retry-After header is the server's delay. Other errors come from
// interceptors of this client: the end of a context keeps its code.
func statusOf(err error) *status.Status {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return status.FromContextError(err)
	}
	st := status.New(codes.Code(failed.Code()), err.Error())
	seconds, err := strconv.Atoi(failed.Meta().Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return st
	}
	delayed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(seconds) * time.Second)})
	if err != nil {
		return st
	}
	return delayed
}
