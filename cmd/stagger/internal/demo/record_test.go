// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/testserver"
)

func TestAnOrderIsMadeTwiceIfTheServersDidItTwice(t *testing.T) {
	t.Parallel()
	done := testserver.Attempt{Code: codes.OK, Received: 1}
	left := testserver.Attempt{Code: codes.Canceled, Cancelled: true, Received: 1} // and served all the same
	cut := testserver.Attempt{Code: codes.Canceled, Cancelled: true}               // before its request came
	refused := testserver.Attempt{Code: codes.ResourceExhausted, Received: 1}
	for name, row := range map[string]struct {
		method   string
		attempts []testserver.Attempt
		want     int
	}{
		"once":                    {orders.CreateOrder, []testserver.Attempt{done}, 0},
		"again after a refusal":   {orders.CreateOrder, []testserver.Attempt{refused, done}, 0},
		"again after a timeout":   {orders.CreateOrder, []testserver.Attempt{left, done}, 1},
		"again after a cut":       {orders.CreateOrder, []testserver.Attempt{cut, cut, done}, 0},
		"three times":             {orders.CreateOrder, []testserver.Attempt{left, left, done}, 1},
		"a read may be done more": {orders.GetOrder, []testserver.Attempt{left, done}, 0},
	} {
		var r record
		for i := range row.attempts {
			row.attempts[i].Method, row.attempts[i].Request = row.method, []byte("order 1")
		}
		r.see(time.Now(), row.attempts)
		if r.twice != row.want || len(r.requests) != len(row.attempts) {
			t.Errorf("%s: %d made twice, %d requests; want %d, %d", name, r.twice, len(r.requests), row.want, len(row.attempts))
		}
	}
}
