// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package payments_test

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/payments"
)

// service is acme.payments.v1.PaymentService, as generated code would have it: Pay takes an amount, and
// returns the number of the payment.
type service struct {
	pay func(ctx context.Context, amount int64) error // may fail or panic; nil: no failure

	mu   sync.Mutex
	made []int64
}

func (s *service) Pay(ctx context.Context, amount *wrapperspb.Int64Value) (*wrapperspb.Int64Value, error) {
	if s.pay != nil {
		if err := s.pay(ctx, amount.GetValue()); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, amount.GetValue())
	return wrapperspb.Int64(int64(len(s.made))), nil
}

// register is what generated code does.
func (s *service) register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "acme.payments.v1.PaymentService",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Pay",
			Handler: func(_ any, ctx context.Context, dec func(any) error, icpt grpc.UnaryServerInterceptor) (any, error) {
				amount := new(wrapperspb.Int64Value)
				if err := dec(amount); err != nil {
					return nil, err
				}
				return icpt(ctx, amount, &grpc.UnaryServerInfo{Server: s, FullMethod: payments.Pay},
					func(ctx context.Context, req any) (any, error) { return s.Pay(ctx, req.(*wrapperspb.Int64Value)) })
			},
		}},
	}, s)
}
