// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// alone returns what became of one call through three services, the last of which does last: how often
// each service was called, the error, and how long it took.
func alone(t *testing.T, name string, last step) (requests []int, took time.Duration, err error) {
	t.Helper()
	all := contenders(1)
	c := all[slices.IndexFunc(all, func(c contender) bool { return c.name == name })]
	synctest.Test(t, func(t *testing.T) {
		s := storm{services: 3, deadline: time.Minute}
		services, failed := startChain(t.Context(), s, c)
		if failed != nil {
			t.Fatal(failed)
		}
		defer services.close()
		if failed := services.last().enter(phase{step: last}); failed != nil {
			t.Fatal(failed)
		}
		start := time.Now()
		err = services.first().pick().Invoke(t.Context(), s.method(), &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
		took = time.Since(start)
		for _, list := range services.requests(start) {
			requests = append(requests, len(list))
		}
	})
	return requests, took, err
}

func TestACallGoesThroughAllServicesAndEachDoesItsWork(t *testing.T) {
	t.Parallel()
	requests, took, err := alone(t, "no retries", nil)
	if err != nil || !slices.Equal(requests, []int{1, 1, 1}) || took != 3*serviceTime {
		t.Errorf("%v requests in %v, error %v; want one each, %v", requests, took, err, 3*serviceTime)
	}
}

// Five attempts a hop: 125 requests at the last service for one call, unless the hop nearest to the
// trouble says that it has given up.
func TestRetriesOnEveryHopMultiplyButNotThoseOfStagger(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]int{
		"no retries":      {1, 1, 1},
		"grpc-middleware": {5, 25, 125},
		"gRPC":            {5, 25, 125},
		"stagger":         {1, 1, 3}, // nothing is earned yet but the reserve, half an attempt a second for 5 s
	} {
		requests, _, err := alone(t, name, down)
		if !slices.Equal(requests, want) || status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v requests, error %v; want %v, UNAVAILABLE", name, requests, err, want)
		}
	}
}
