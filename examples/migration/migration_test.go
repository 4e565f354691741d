// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/examples/migration"
	"github.com/stagger-go/stagger/testserver"
)

const (
	getOrder    = "/acme.orders.v1.OrderService/GetOrder"
	createOrder = "/acme.orders.v1.OrderService/CreateOrder"
)

// Each client reads an order from a server that fails twice. They differ when the server fails each time that an order is
// created: requests is how often they send it.
var ways = map[string]struct {
	client   migration.Client
	requests int
}{
	"stagger":            {migration.Stagger(), 1},
	"go-grpc-middleware": {migration.Middleware(), 4},
	"service config":     {migration.ServiceConfig(), 4},
	"failsafe-go":        {migration.Failsafe(), 4},
	"loop":               {migration.Loop(), 4},
	"gax-go":             {migration.Gax(), 0}, // until the deadline
}

func TestGet(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(getOrder, testserver.Fail(codes.Unavailable, "restarting").Times(2), testserver.OK())
				conn, err := way.client.Dial(server.Target(), server.DialOptions()...)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := way.client.Get(t.Context(), conn); err != nil || server.Count(getOrder) != 3 {
					t.Errorf("%v after %d attempts; want success after 3", err, server.Count(getOrder))
				}
			})
		})
	}
}

func TestCreate(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(createOrder, testserver.Fail(codes.Unavailable, "restarting"))
				conn, err := way.client.Dial(server.Target(), server.DialOptions()...)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				err = way.client.Create(ctx, conn)
				got := server.Count(createOrder)
				if way.requests == 0 && got <= 4 || way.requests > 0 && got != way.requests {
					t.Errorf("sent %d times; want %d", got, way.requests)
				}
				if code := status.Code(err); way.requests == 1 && code != codes.Unavailable {
					t.Errorf("%v; want the server's own error", err)
				}
			})
		})
	}
}
