// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package migration has the clients of docs/coming-from.md: with each of the ways to retry that there are for
// gRPC and Go, and with stagger in its place.
package migration

import (
	"context"
	_ "embed"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// Client is a way to dial a service, and to read and to create an order there.
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

// call makes a call as generated code does.
func call(ctx context.Context, conn *grpc.ClientConn, method string) error {
	return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
}

func get(ctx context.Context, conn *grpc.ClientConn) error    { return call(ctx, conn, getOrder) }
func create(ctx context.Context, conn *grpc.ClientConn) error { return call(ctx, conn, createOrder) }

// Policies is retry.yaml, which all the ways lead to.
//
//go:embed retry.yaml
var Policies []byte

// Stagger is what they become.
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
	return grpc.NewClient(target, append(opts, retrier.DialOptions()...)...)
}
