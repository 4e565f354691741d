// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// call makes a call as generated code does.
func call(ctx context.Context, conn *grpc.ClientConn, method string) error {
	return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
}

func get(ctx context.Context, conn *grpc.ClientConn) error    { return call(ctx, conn, getOrder) }
func create(ctx context.Context, conn *grpc.ClientConn) error { return call(ctx, conn, createOrder) }
