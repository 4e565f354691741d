// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/lease"
)

// The bucket that simulations take for Redis answers whatever the script does: to clocks that stand still, jump and go
// back, to rates that change, and to requests for nothing, little and more than there is.
func TestScript_Bucket(t *testing.T) {
	for seed := range uint64(8) {
		r, chance := newRoom(t), rand.New(rand.NewPCG(seed, 0))
		var bucket lease.Bucket
		granted := 0
		for step := range 200 {
			r.now = r.now.Add(time.Duration(pick(chance, 0, 1, 7, 300, 1500, 31_000, -2000)) * time.Millisecond)
			r.SetTime(r.now)
			if chance.IntN(20) == 0 {
				r.pool.perSecond = []float64{0.0001, 0.7, 3, 100, 1e6}[chance.IntN(5)]
			}
			request := lease.Request{
				Tokens: pick(chance, 0, 1, 333_333, 1e6, 5e6, 250e6), Least: pick(chance, 0, 1, 1e6, 5e6),
				Covered: time.Duration(pick(chance, 0, 1, 20_000, 2_000_000)) * time.Millisecond,
			}
			got, err := r.pool.request(context.Background(), request)
			if err != nil {
				t.Fatal(err)
			}
			want := bucket.Answer(time.Duration(r.now.UnixNano()), int64(math.Round(r.pool.perSecond*1e6)), request)
			if got.Tokens != want.Tokens || math.Abs(got.Clients-want.Clients) > 0.0011 {
				t.Fatalf("seed %d, step %d, %+v: the script says %+v, the bucket %+v", seed, step, request, got, want)
			}
			if got.Tokens > 0 {
				granted++
			}
		}
		if granted < 20 {
			t.Errorf("seed %d: %d leases of 200 requests; want some, for something to compare", seed, granted)
		}
	}
}

// pick draws one of the values.
func pick(chance *rand.Rand, values ...int64) int64 {
	return values[chance.IntN(len(values))]
}
