// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"context"
	"encoding/gob"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
)

// part is the clients of one process.
type part struct {
	Addrs   []string `json:"addrs"` // of Redis; the clients take them in turn
	First   int      `json:"first"` // the number of the first client
	Clients int      `json:"clients"`
	Rate    float64  `json:"rate"`
	Spends  int      `json:"spends"` // of each token; 1 is honest
}

// partKey is where a process of clients is told its part.
const partKey = "STAGGER_REDIS_PART"

// pass lets real time pass.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// line is an entry as a process writes it, with its times since 1970.
type line struct {
	Client    int
	At, Known time.Duration
	Tokens    float64
	Kind      string
}

// writer writes the lines of a process.
type writer struct {
	mu  sync.Mutex
	enc *gob.Encoder
}

func (w *writer) write(l line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enc.Encode(l); err != nil { // the parent is gone
		panic(err)
	}
}

// serve is the process of a part: its clients spend what they can get until they are killed.
func (p part) serve() {
	w := &writer{enc: gob.NewEncoder(os.Stdout)}
	for i := range p.Clients {
		number := p.First + i
		client := redis.NewClient(&redis.Options{Addr: p.Addrs[number%len(p.Addrs)], MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 1})
		fleet := redisbudget.New(recorder{client, number, w}, redisbudget.WithLogger(slog.New(slog.DiscardHandler)))
		lease, err := fleet.Lease(budget.FleetConfig{Name: "orders", PerSecond: p.Rate})
		if err != nil {
			panic(err)
		}
		go p.spend(lease, number, w)
	}
	select {}
}

// spend has calls fail, ten a second, each of which waits in a backoff for the token that it is promised.
func (p part) spend(lease budget.Lease, number int, w *writer) {
	const token = 1e6
	pass(time.Duration(number%10) * 10 * time.Millisecond)
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		at := unix()
		d, ok := lease.Take(budget.Now(), token)
		if ok && d.Asked {
			pass(80 * time.Millisecond)
			at = unix()
			ok = lease.Confirm(budget.Now(), d)
		}
		if !ok {
			continue
		}
		kind := spent
		if d.Number == math.MaxUint64 {
			kind = shared
		}
		w.write(line{Client: number, At: at, Tokens: float64(p.Spends), Kind: kind})
	}
}

// unix is the time by a clock that all processes have.
func unix() time.Duration { return time.Duration(time.Now().UnixNano()) }

// recorder writes what its client is leased.
type recorder struct {
	redis.Scripter

	number int
	w      *writer
}

func (r recorder) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	at := unix()
	cmd := r.Scripter.EvalSha(ctx, sha, keys, args...)
	r.record(at, cmd)
	return cmd
}

func (r recorder) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	at := unix()
	cmd := r.Scripter.Eval(ctx, script, keys, args...)
	r.record(at, cmd)
	return cmd
}

func (r recorder) record(at time.Duration, cmd *redis.Cmd) {
	l := line{Client: r.number, At: at, Known: unix(), Kind: asked}
	if values, err := cmd.Slice(); err == nil {
		if granted, _ := values[0].(int64); granted > 0 {
			l.Tokens, l.Kind = float64(granted)/1e6, leased
		}
	}
	r.w.write(l)
}
