// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisfleet

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/lease"
)

// The bucket that simulations use instead of Redis gives the same answers as the script: with clocks that stop, jump and go
// back, with rates that change, and for requests for zero, few and too many tokens.
func TestBucket(t *testing.T) {
	for seed := range uint64(8) {
		server, now, chance := miniredis.RunT(t), time.Unix(1_000_000, 0), rand.New(rand.NewPCG(seed, 0))
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		defer client.Close()
		fleet := newFleet(t, client)
		var bucket lease.Bucket
		granted, perSecond := 0, 100.0
		for step := range 200 {
			now = now.Add(time.Duration(pick(chance, 0, 1, 7, 300, 1500, 31_000, -2000)) * time.Millisecond)
			server.SetTime(now)
			if chance.IntN(20) == 0 {
				perSecond = []float64{0.0001, 0.7, 3, 100, 1e6}[chance.IntN(5)]
			}
			request := lease.Request{
				Tokens: pick(chance, 0, 1, 333_333, 1e6, 5e6, 250e6), Least: pick(chance, 0, 1, 1e6, 5e6),
				Covered: time.Duration(pick(chance, 0, 1, 20_000, 2_000_000)) * time.Millisecond,
			}
			tokens, clients, err := fleet.Draw(t.Context(), budget.PoolRequest{
				Pool: "orders", PerSecond: perSecond, Tokens: request.Tokens, Least: request.Least, Covered: request.Covered,
			})
			if err != nil {
				t.Fatal(err)
			}
			want := bucket.AnswerRequest(time.Duration(now.UnixNano()), int64(math.Round(perSecond*1e6)), request)
			if tokens != want.Tokens || math.Abs(clients-want.Clients) > 0.0011 {
				t.Fatalf("seed %d, step %d, %+v: the script says %d, %v; the bucket %+v", seed, step, request, tokens, clients, want)
			}
			if tokens > 0 {
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
