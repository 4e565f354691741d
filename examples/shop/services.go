// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
)

// names are the services' names in gRPC.
var names = map[string]string{
	"gateway":   "acme.gateway.v1.GatewayService",
	"orders":    "acme.orders.v1.OrderService",
	"inventory": "acme.inventory.v1.InventoryService",
	"payments":  "acme.payments.v1.PaymentService",
}

// handler implements a method, with texts as request and response.
type handler func(p *process, ctx context.Context, text string) (string, error)

// service is one of the four: its methods, the services that it calls, and its capacity.
type service struct {
	methods map[string]handler
	calls   []string
	workers int
	pace    pace
}

var services = map[string]service{
	"gateway": {
		methods: map[string]handler{
			"Browse": func(p *process, ctx context.Context, order string) (string, error) {
				return p.call(ctx, "orders", "GetOrder", order)
			},
			"Buy": func(p *process, ctx context.Context, purchase string) (string, error) {
				return p.call(ctx, "orders", "CreateOrder", purchase)
			},
		},
		calls: []string{"orders"}, workers: 1000,
	},
	"orders": {
		methods: map[string]handler{
			"GetOrder": func(p *process, ctx context.Context, order string) (string, error) {
				return p.call(ctx, "inventory", "GetStock", order)
			},
			"CreateOrder": (*process).createOrder,
		},
		calls: []string{"inventory", "payments"}, workers: 1000,
	},
	"inventory": {
		methods: map[string]handler{
			"GetStock": func(p *process, ctx context.Context, _ string) (string, error) { return "12 in stock", p.work(ctx) },
		},
		workers: 4, pace: pace{Takes: 5 * time.Millisecond}, // 800 calls a second
	},
	"payments": {
		methods: map[string]handler{
			"Pay": func(p *process, ctx context.Context, _ string) (string, error) {
				if _, err := p.ledger.pay(ctx); err != nil {
					return "", err
				}
				return paid, p.work(ctx) // whether it was just made or long ago
			},
		},
		workers: 50, pace: pace{Takes: 20 * time.Millisecond},
	},
}

// createOrder checks the stock and pays. The key of the payment is the purchase: if the same purchase is requested again, by
// a retry or by a user who presses the button again, it isn't paid again.
func (p *process) createOrder(ctx context.Context, purchase string) (string, error) {
	if _, err := p.call(ctx, "inventory", "GetStock", purchase); err != nil {
		return "", err
	}
	return p.call(ctx, "payments", "Pay", purchase, interceptor.IdempotencyKey(purchase))
}

// call calls another service, like generated code. It returns an error of this service, with the code of the other's.
func (p *process) call(ctx context.Context, service, method, text string, options ...grpc.CallOption) (string, error) {
	reply := new(wrapperspb.StringValue)
	path := "/" + names[service] + "/" + method
	if err := p.conns[service].Invoke(ctx, path, wrapperspb.String(text), reply, append(options, grpc.StaticMethod())...); err != nil {
		return "", status.Errorf(status.Code(err), "%s: %s", service, status.Convert(err).Message())
	}
	return reply.GetValue(), nil
}

// register registers a service like generated code.
func (p *process) register(server grpc.ServiceRegistrar, service string) {
	desc := &grpc.ServiceDesc{ServiceName: names[service], HandlerType: (*any)(nil)}
	for name, handle := range services[service].methods {
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(_ any, ctx context.Context, decode func(any) error, icpt grpc.UnaryServerInterceptor) (any, error) {
				request := new(wrapperspb.StringValue)
				if err := decode(request); err != nil {
					return nil, err
				}
				return icpt(ctx, request, &grpc.UnaryServerInfo{FullMethod: "/" + names[service] + "/" + name}, func(ctx context.Context, _ any) (any, error) {
					text, err := handle(p, ctx, request.GetValue())
					if err != nil {
						return nil, err
					}
					return wrapperspb.String(text), nil
				})
			},
		})
	}
	server.RegisterService(desc, struct{}{})
}
