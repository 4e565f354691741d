// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package migration has the clients of docs/coming-from.md: with each of the ways to retry that there are for
// gRPC and Go, and with stagger in its place.
package migration

import (
	"context"

	"google.golang.org/grpc"
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
