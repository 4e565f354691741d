// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package migration has the clients of docs/coming-from.md: one with each of the usual ways to retry in gRPC for Go, and one
// with stagger instead.
package migration

import (
	"context"
	_ "embed"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// Client dials a service, and reads and creates orders there.
type Client struct {
	Dial   func(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error)
	Get    func(ctx context.Context, conn *grpc.ClientConn) error
	Create func(ctx context.Context, conn *grpc.ClientConn) error
}

// The methods that clients call.
const (
	getOrder    = "/acme.orders.v1.OrderService/GetOrder"
	createOrder = "/acme.orders.v1.OrderService/CreateOrder"
)

// call makes a call like generated code.
func call(ctx context.Context, conn *grpc.ClientConn, method string) error {
	return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
}

func get(ctx context.Context, conn *grpc.ClientConn) error    { return call(ctx, conn, getOrder) }
func create(ctx context.Context, conn *grpc.ClientConn) error { return call(ctx, conn, createOrder) }

// Policies is retry.yaml, the result of each migration.
//
//go:embed retry.yaml
var Policies []byte

// Stagger returns the client after migration.
func Stagger() Client { return Client{dialStagger, get, create} }

func dialStagger(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	set, err := policy.Parse("retry.yaml", Policies)
	if err != nil {
		return nil, err
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(target, append(retrier.DialOptions(), opts...)...)
}
