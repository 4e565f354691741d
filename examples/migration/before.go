// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/googleapis/gax-go/v2"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Loop returns a client whose program retries.
func Loop() Client { return Client{grpc.NewClient, getInLoop, createInLoop} }

func getInLoop(ctx context.Context, conn *grpc.ClientConn) (err error) {
	for attempt := range 4 {
		if err = get(ctx, conn); status.Code(err) != codes.Unavailable {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond << attempt):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func createInLoop(ctx context.Context, conn *grpc.ClientConn) (err error) {
	for range 4 {
		if err = create(ctx, conn); status.Code(err) != codes.Unavailable {
			break
		}
	}
	return err
}

// ServiceConfig returns a client with gRPC's own retries.
func ServiceConfig() Client { return Client{dialServiceConfig, get, create} }

func dialServiceConfig(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append(opts, grpc.WithDefaultServiceConfig(`{"methodConfig": [{
		"name": [{"service": "acme.orders.v1.OrderService"}],
		"retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]}`))...)
}

// Middleware returns a client with go-grpc-middleware's retry.
func Middleware() Client { return Client{dialMiddleware, get, create} }

func dialMiddleware(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(target, append(opts, grpc.WithUnaryInterceptor(retry.UnaryClientInterceptor(
		retry.WithMax(4),
		retry.WithCodes(codes.Unavailable),
		retry.WithBackoff(retry.BackoffExponentialWithJitter(100*time.Millisecond, 0.2)),
	)))...)
}

// Failsafe returns a client with failsafe-go.
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

// Gax returns a client with gax-go, like the generated clients of Google's APIs.
func Gax() Client {
	return Client{
		grpc.NewClient,
		func(ctx context.Context, conn *grpc.ClientConn) error { return invokeGax(ctx, conn, getOrder) },
		func(ctx context.Context, conn *grpc.ClientConn) error { return invokeGax(ctx, conn, createOrder) },
	}
}

func invokeGax(ctx context.Context, conn *grpc.ClientConn, method string) error {
	return gax.Invoke(ctx, func(ctx context.Context, _ gax.CallSettings) error {
		return call(ctx, conn, method)
	}, gax.WithRetry(func() gax.Retryer {
		return gax.OnCodes([]codes.Code{codes.Unavailable}, gax.Backoff{
			Initial: 100 * time.Millisecond, Max: time.Second, Multiplier: 2,
		})
	}))
}
