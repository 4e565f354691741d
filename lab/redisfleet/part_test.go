// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisfleet

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/budget/redisbudget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/lease"
)

// part is the clients of one process.
type part struct {
	Addrs   []string `json:"addrs"` // of Redis; the clients use
	First   int      `json:"first"` // number of the first
	Clients int      `json:"clients"`
	Rate    float64  `json:"rate"`
	Spends  int      `json:"spends"` // expenses per token; 1 is honest
}

func TestMain(m *testing.M) {
	if text := os.Getenv(partKey); text != "" {
		var p part
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			panic(err)
		}
		p.serve()
	}
	goleak.VerifyTestMain(m)
}

// partKey is the environment variable with a process's part.
const partKey = "STAGGER_REDIS_PART"

// until waits for an event in the background.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		pass(time.Millisecond)
	}
}

// pass waits in real time.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// line is an entry in a process's output, with its times since 1970.
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

// serve runs the process of a part: its clients spend as much as they can get until they are killed.
func (p part) serve() {
	w := &writer{enc: gob.NewEncoder(os.Stdout)}
	for i := range p.Clients {
		number := p.First + i
		client := redis.NewClient(&redis.Options{Addr: p.Addrs[number%len(p.Addrs)], MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 1})
		fleet, err := redisbudget.New(recorder{client, number, w})
		if err != nil {
			panic(err)
		}
		own, _ := lease.NewPools(fleet, func(lease.State) {}).Lease("orders", p.Rate)
		go p.spend(own, number, w)
	}
	select {}
}

// spend makes calls fail, ten a second, each of which waits in a backoff for its promised token.
func (p part) spend(own balance.Lease, number int, w *writer) {
	const token = 1e6
	pass(time.Duration(number%10) * 10 * time.Millisecond)
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		at := unix()
		d, ok := own.Take(clock.Now(), token)
		if ok && d.Asked {
			pass(80 * time.Millisecond)
			at = unix()
			ok = own.Confirm(clock.Now(), d)
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

// unix returns the time on a clock that all processes share.
func unix() time.Duration { return time.Duration(time.Now().UnixNano()) }

// recorder writes the leases of its client.
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
