// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/report"
)

// row is a row of a database with optimistic concurrency: a write succeeds if it names the version that is stored.
type row struct {
	mu      sync.Mutex // guards all below
	version int
	calls   int
}

func (r *row) read() (version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

func (r *row) write(version int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if version != r.version {
		return false
	}
	r.version++
	return true
}

// writeOnce reads the row and writes it, until a write succeeds. A request takes 10 ms each way, with a standard deviation of 2 ms.
func (r *row) writeOnce(c backoff.Config, random *rand.Rand) {
	network := func() {
		time.Sleep(max(0, 10*time.Millisecond+time.Duration(random.NormFloat64()*float64(2*time.Millisecond))))
	}
	var delay time.Duration
	for retry := 0; ; retry++ {
		network()
		version := r.read()
		network()
		network()
		ok := r.write(version)
		network()
		if ok {
			return
		}
		delay = c.Delay(retry, delay, random.Float64())
		time.Sleep(delay)
	}
}

// contend lets writers of one row start together, and returns how often they wrote, and how long the last one took.
func contend(t *testing.T, writers int, c backoff.Config, seed uint64) (calls int, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		var r row
		var all sync.WaitGroup
		for i := range writers {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			all.Go(func() { r.writeOnce(c, random) })
		}
		all.Wait()
		calls, took = r.calls, time.Since(began)
	})
	return calls, took
}

// contention plays writers of one row, with the backoff of a database's client: 5 ms that doubles up to 2 s.
func contention(t *testing.T) (report.Table, map[string]report.Plot) {
	t.Helper()
	const plays = 20
	table := report.Table{
		Title:   "Writes until each writer of one row has succeeded, and seconds until then: means of 20 plays",
		Columns: []string{"writers"},
	}
	writes := report.Plot{Title: "Writes until each writer of one row has succeeded", XLabel: "writers", YLabel: "writes"}
	times := report.Plot{Title: "Time until each writer of one row has succeeded", XLabel: "writers", YLabel: "s"}
	numbers := []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
	for _, n := range numbers {
		table.Rows = append(table.Rows, []string{strconv.Itoa(n)})
	}
	for _, j := range []backoff.Jitter{backoff.JitterNone, backoff.JitterEqual, backoff.JitterFull, backoff.JitterDecorrelated} {
		table.Columns = append(table.Columns, string(j)+": writes", "s")
		c := backoff.Config{Initial: 5 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2, Jitter: j}
		calls, took := report.Series{Name: string(j)}, report.Series{Name: string(j)}
		for i, n := range numbers {
			sum, all := 0, time.Duration(0)
			for play := range plays {
				k, d := contend(t, n, c, uint64(play))
				sum, all = sum+k, all+d
			}
			table.Rows[i] = append(table.Rows[i], strconv.Itoa(sum/plays), fmt.Sprintf("%.1f", all.Seconds()/plays))
			calls.X, calls.Y = append(calls.X, float64(n)), append(calls.Y, float64(sum)/plays)
			took.X, took.Y = append(took.X, float64(n)), append(took.Y, all.Seconds()/plays)
		}
		writes.Series, times.Series = append(writes.Series, calls), append(times.Series, took)
	}
	return table, map[string]report.Plot{"writes": writes, "times": times}
}
