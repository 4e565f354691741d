// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A call that waits too long for a worker is refused.
func TestWorkers_Wait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(1, pace{Takes: time.Second / 2})
		serve := func() error {
			_, err := w.serve(t.Context(), nil, nil, func(ctx context.Context, _ any) (any, error) { return nil, w.work(ctx) })
			return err
		}
		first := make(chan error, 1)
		go func() { first <- serve() }()
		synctest.Wait()
		start := time.Now()
		err := serve()
		if took := time.Since(start); status.Code(err) != codes.ResourceExhausted || took != maxWait {
			t.Errorf("%v after %v; want a refusal after %v", err, took, maxWait)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}
