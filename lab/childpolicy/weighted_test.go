// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package childpolicy

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	_ "google.golang.org/grpc/balancer/weightedroundrobin" // the policy weighted_round_robin
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit/grpctest"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const weighted = `{"loadBalancingConfig": [{"stagger_retry_elsewhere": {"childPolicy": [{"weighted_round_robin": {}}]}}]}`

// call makes up to attempts attempts.
func call(ctx context.Context, b *grpctest.Backends, attempts int) error {
	ctx = elsewhere.NewContext(ctx)
	var err error
	for range attempts {
		if err = b.Conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}); err == nil {
			return nil
		}
	}
	return err
}

func TestWeightedRoundRobin(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, b *grpctest.Backends){
		"one fails": func(t *testing.T, b *grpctest.Backends) {
			b.Servers[1].On("*", testserver.Fail(codes.Unavailable))
			for range 200 {
				if err := call(t.Context(), b, 2); err != nil {
					t.Fatal(err)
				}
			}
			if visits := b.Visits(); !slices.Contains(visits, 1) {
				t.Error("no call went to the backend that fails")
			}
		},
		"all fail": func(t *testing.T, b *grpctest.Backends) {
			for _, s := range b.Servers {
				s.On("*", testserver.Fail(codes.Unavailable))
			}
			_ = call(t.Context(), b, 8)
			visits := b.Visits()
			if len(visits) != 8 || !slices.Equal(slices.Sorted(slices.Values(visits[:4])), []int{0, 1, 2, 3}) || !slices.Equal(visits[:4], visits[4:]) {
				t.Errorf("visited %v, want all, and then again in the same order", visits)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := grpctest.Start(t, 4, weighted)
				b.VisitAll(t, func() error { return call(t.Context(), b, 1) })
				test(t, b)
			})
		})
	}
}

// A policy file may name the policy by itself, in a program that imports it.
func TestWeightedRoundRobin_OfPolicyFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("retry.yaml", []byte("loadBalancingConfig: [{weighted_round_robin: {}}]"))
		if err != nil {
			t.Fatal(err)
		}
		retrier, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
			if d.Severity != "note" {
				t.Errorf("%s: %s", d.Severity, d)
			}
		}}))
		if err != nil {
			t.Fatal(err)
		}
		b := grpctest.Start(t, 4, `{"loadBalancingConfig": [{"pick_first": {}}]}`, retrier.DialOptions()...)
		b.VisitAll(t, func() error { return call(t.Context(), b, 1) })
	})
}
