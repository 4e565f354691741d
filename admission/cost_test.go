// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package admission_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
)

// A call with admission starts its engine before the first attempt, which a call without it does not need if it succeeds. The gate itself
// allocates nothing.
func TestAdmission_Cost(t *testing.T) {
	answered := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	cost := func(settings string) float64 {
		unary := testkit.Must(interceptor.New(parse(t, settings), quiet))(t).Unary()
		return testing.AllocsPerRun(1000, func() { _ = unary(context.Background(), get, nil, nil, nil, answered) })
	}
	if with, without := cost(admitting(retries)), cost(retries); with > without+3 {
		t.Errorf("%v allocations, %v without admission; want at most 3 more", with, without)
	}
}
