// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
)

// What README and docs show of Go stands here or in another test, so that it compiles.

func pageDial(ctx context.Context, target string, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	retrier, err := interceptor.Watch(ctx, "retry.yaml")
	if err != nil {
		log.Fatal(err) // every error in the file, each with line, column and what would be right
	}
	conn, err := grpc.NewClient(target, append(retrier.DialOptions(),
		grpc.WithTransportCredentials(creds))...)
	return conn, err
}

func pageReason(err error) {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		log.Printf("gave up after %d attempts in %v: %s", e.Attempts, e.Elapsed, e.Reason)
	}
}

func pageServer(retrier *interceptor.Retrier) *grpc.Server {
	return grpc.NewServer(retrier.ServerOptions()...)
}

func pageServiceConfig(creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	retrier, err := interceptor.New(nil, interceptor.WithServiceConfig())
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("dns:///orders.acme.example", append(retrier.DialOptions(),
		grpc.WithResolvers(retrier.Resolver(resolver.Get("dns"))), // shows hedgingPolicy, retryThrottling and stagger's keys too
		grpc.WithTransportCredentials(creds))...)
}

func pageShedding(retrier *interceptor.Retrier, slots chan struct{}) *grpc.Server {
	refuse := interceptor.Refuse(func(context.Context, string) (release func(), err error) {
		select {
		case slots <- struct{}{}:
			return func() { <-slots }, nil
		default:
			return nil, status.Error(codes.ResourceExhausted, "all slots are taken")
		}
	})
	return grpc.NewServer(retrier.ServerOptions(refuse)...)
}

var _ = []any{pageDial, pageReason, pageServer, pageServiceConfig, pageShedding}
