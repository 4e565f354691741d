// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisfleet

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
)

// part is the clients of one process.
type part struct {
	Addr    string  `json:"addr"`  // of Redis
	First   int     `json:"first"` // number of the first client
	Clients int     `json:"clients"`
	Rate    float64 `json:"rate"`
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
		client := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 1})
		away := new(atomic.Bool)
		pool, err := redisbudget.New(recorder{client, number, w}, redisbudget.Config{
			Pool: "orders", PerSecond: p.Rate, Changed: func(_ string, err error) { away.Store(err != nil) },
		})
		if err != nil {
			panic(err)
		}
		go p.spend(pool.Budget(""), away, number, w)
	}
	select {}
}

// spend makes calls fail, ten a second. They earn nothing, since the budget hears of none.
func (p part) spend(own budget.Budget, away *atomic.Bool, number int, w *writer) {
	pass(time.Duration(number%10) * 10 * time.Millisecond)
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		at := unix()
		kind := spent
		if away.Load() {
			kind = shared
		}
		if answer, _ := own.Allow(time.Now(), budget.CauseFailure); answer != budget.Yes {
			continue
		}
		w.write(line{Client: number, At: at, Tokens: 1, Kind: kind})
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
