// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package fleet

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

const span = time.Second / 10 // the span of a peak

// reconnects has the connections that a server gets when it is back, each with its delay, and the most in any tenth of a second.
type reconnects struct {
	delays []time.Duration
	peak   int // a second
}

func (r *reconnects) measure() {
	slices.Sort(r.delays)
	spans := map[time.Duration]int{}
	for _, d := range r.delays {
		spans[d/span]++
		r.peak = max(r.peak, spans[d/span]*int(time.Second/span))
	}
}

func (r *reconnects) quantile(q float64) time.Duration {
	return r.delays[min(int(q*float64(len(r.delays))), len(r.delays)-1)]
}

// simulate returns how n clients reconnect, whose connections were cut within a tenth of a second, when the server is back after away.
func simulate(n int, c backoff.Config, away time.Duration) *reconnects {
	r := new(reconnects)
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		at := time.Duration(random.Float64() * float64(span))
		for tries := 0; at < away; tries++ {
			at += delay(c, tries, random)
		}
		r.delays = append(r.delays, at-away)
	}
	r.measure()
	return r
}

// delay returns how long gRPC waits after failing to connect, which has no jitter at first.
func delay(c backoff.Config, tries int, random *rand.Rand) time.Duration {
	if tries == 0 {
		return c.BaseDelay
	}
	grown := min(float64(c.BaseDelay)*math.Pow(c.Multiplier, float64(tries)), float64(c.MaxDelay))
	return time.Duration(grown * (1 + c.Jitter*(2*random.Float64()-1)))
}

// An arrival is a client that connects.
type arrival struct {
	at    time.Duration
	tries int
}

// arrivals is a heap, by time.
type arrivals []arrival

func (a *arrivals) Len() int           { return len(*a) }
func (a *arrivals) Less(i, j int) bool { return (*a)[i].at < (*a)[j].at }
func (a *arrivals) Swap(i, j int)      { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }
func (a *arrivals) Push(x any)         { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

const (
	never    = 10 * time.Minute
	patience = 20 * time.Second // MinConnectTimeout
)

// handshakes returns when 99 % of n clients are back, after the server is, and how many handshakes it has done for each. It does rate a
// second, in the order of arrival, also those of clients whose patience has ended.
func handshakes(n int, c backoff.Config, away time.Duration, rate int) (back time.Duration, each float64) {
	random := rand.New(rand.NewPCG(1, 2))
	var coming arrivals
	for range n {
		a := arrival{at: time.Duration(random.Float64() * float64(span))}
		for ; a.at < away; a.tries++ {
			a.at += delay(c, a.tries, random)
		}
		heap.Push(&coming, a)
	}
	free, made, connected := away, 0, 0
	for connected < n*99/100 {
		a := heap.Pop(&coming).(arrival)
		free = max(free, a.at) + time.Second/time.Duration(rate)
		made++
		switch {
		case free > away+never:
			return never, float64(made) / float64(n)
		case free <= a.at+patience:
			connected++
		default:
			heap.Push(&coming, arrival{a.at + patience + delay(c, a.tries, random), a.tries + 1})
		}
	}
	return free - away, float64(made) / float64(n)
}

// longestWait is how long a call waits for a connection at most, by default.
const longestWait = defaults.MaxConnectionWait

// waits returns how many calls are saved by waiting, and how long all calls wait together, if one call a second fails from the start of
// the outage until the client is back, and waits until the outage has the age most. It is the average of all clients.
func (r *reconnects) waits(away, most time.Duration) (saved, waited float64) {
	for _, d := range r.delays {
		back, longest := (away + d).Seconds(), longestWait.Seconds()
		if back <= most.Seconds() {
			saved += min(back, longest)
		}
		// A call that begins at the age a waits for the longest wait, or until the outage has that age, or the client is back.
		end := min(back, most.Seconds())
		waited += min(end, longest)*min(end, longest)/2 + longest*max(end-longest, 0)
	}
	n := float64(len(r.delays))
	return saved / n, waited / n
}

// connect returns how n real connections reconnect, in virtual time.
func connect(t *testing.T, n int, c backoff.Config, away time.Duration) *reconnects {
	t.Helper()
	r := new(reconnects)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var back time.Time // guarded by mu, like r
		server := testserver.Start(t)
		for range n {
			conn := testkit.Must(grpc.NewClient(server.Target(), append(server.DialOptions(), grpc.WithConnectParams(grpc.ConnectParams{Backoff: c, MinConnectTimeout: 20 * time.Second}),
				grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))...))(t)
			t.Cleanup(func() { _ = conn.Close() })
			conn.Connect()
			go func() {
				for state := conn.GetState(); conn.WaitForStateChange(t.Context(), state); {
					if state = conn.GetState(); state == connectivity.Ready {
						mu.Lock()
						r.delays = append(r.delays, time.Since(back))
						mu.Unlock()
					}
				}
			}()
		}
		synctest.Wait()
		server.Down()
		time.Sleep(away)
		mu.Lock()
		r.delays, back = nil, time.Now()
		mu.Unlock()
		server.Up()
		time.Sleep(time.Minute)
	})
	r.measure()
	return r
}

// ours are the delays of Retrier.DialOptions.
var ours = backoff.Config{BaseDelay: 250 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}

// The delays of DialOptions bring no larger peak than gRPC's own can.
func TestReconnect(t *testing.T) {
	shown := report.Table{
		Title:   "When 99 % of 10,000 clients are back after the server is, and the most connections a second in any tenth of a second",
		Columns: []string{"first, longest delay"},
	}
	times := []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second, 10 * time.Second, time.Minute}
	for _, away := range times {
		shown.Columns = append(shown.Columns, fmt.Sprintf("away %v s", away.Seconds()))
	}
	worst := 0
	for _, c := range []backoff.Config{backoff.DefaultConfig, ours, with(0.1, 3), with(0.5, 3), with(0.25, 1), with(0.25, 10)} {
		row := []string{fmt.Sprintf("%v, %v", c.BaseDelay, c.MaxDelay)}
		for _, away := range times {
			r := simulate(10_000, c, away)
			row = append(row, fmt.Sprintf("%.1f s, %d", r.quantile(0.99).Seconds(), r.peak))
			switch {
			case c == backoff.DefaultConfig:
				worst = max(worst, r.peak)
			case c == ours && r.peak > worst:
				t.Errorf("%v: %d connections a second; gRPC's own delays bring at most %d", away, r.peak, worst)
			}
		}
		shown.Rows = append(shown.Rows, row)
	}
	kept(t, "reconnect", shown)
}

// kept compares a table with that of reconnect.md, or writes it.
func kept(t *testing.T, mark string, shown report.Table) {
	t.Helper()
	const path = "reconnect.md"
	if *write {
		testkit.NoError(t, terminal.WriteInto(path, mark, []report.Table{shown}))
		return
	}
	for _, line := range testkit.Must(terminal.Differences(path, mark, []report.Table{shown}, nil))(t) {
		t.Errorf("%s: make outages writes it", line)
	}
}

// What calls wait, and what that saves, by the age of an outage at which they stop waiting. All restarts count the same.
func TestReconnect_Waits(t *testing.T) {
	shown := report.Table{
		Title:   "Calls saved, and seconds that all calls wait together, with one call a second, by the age at which calls stop waiting",
		Columns: []string{"restart"},
	}
	var ages []time.Duration
	for age := time.Second; age <= 10*time.Second; age += time.Second {
		ages = append(ages, age)
		shown.Columns = append(shown.Columns, fmt.Sprintf("%.0f s", age.Seconds()))
	}
	saved, waited := make([]float64, len(ages)), make([]float64, len(ages))
	for _, seconds := range []float64{0.3, 1, 2, 3, 5, 8, 12} {
		away := time.Duration(seconds * float64(time.Second))
		r := simulate(10_000, ours, away)
		row := []string{fmt.Sprint(away)}
		for i, age := range ages {
			s, w := r.waits(away, age)
			saved[i], waited[i] = saved[i]+s, waited[i]+w
			row = append(row, fmt.Sprintf("%.1f, %.1f", s, w))
		}
		shown.Rows = append(shown.Rows, row)
	}
	share := []string{"share of 10 s"}
	for i := range ages {
		share = append(share, fmt.Sprintf("%.0f %%, %.0f %%", 100*saved[i]/saved[len(ages)-1], 100*waited[i]/waited[len(ages)-1]))
	}
	shown.Rows = append(shown.Rows, share)
	for _, away := range []time.Duration{3 * time.Second, 5 * time.Second, 12 * time.Second} {
		r := simulate(10_000, backoff.DefaultConfig, away)
		row := []string{fmt.Sprintf("%v, gRPC's own delays", away)}
		for _, age := range ages {
			s, w := r.waits(away, age)
			row = append(row, fmt.Sprintf("%.1f, %.1f", s, w))
		}
		shown.Rows = append(shown.Rows, row)
	}
	kept(t, "waits", shown)
}

func with(base, most float64) backoff.Config {
	c := ours
	c.BaseDelay, c.MaxDelay = time.Duration(base*float64(time.Second)), time.Duration(most*float64(time.Second))
	return c
}

// The simulation does as a thousand real connections.
func TestReconnect_Real(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 10 * time.Second} {
		s, p := simulate(1000, ours, away), connect(t, 1000, ours, away)
		for _, q := range []float64{0.5, 0.99} {
			if got, want := p.quantile(q), s.quantile(q); len(p.delays) != 1000 || (got-want).Abs() > 200*time.Millisecond {
				t.Errorf("away for %v: %v of %d after %v; want %v", away, q, len(p.delays), got, want)
			}
		}
		if float64(p.peak) > 1.5*float64(s.peak) {
			t.Errorf("away for %v: %d connections a second; want about %d", away, p.peak, s.peak)
		}
	}
}

// Where a server's handshakes are the bottleneck, the delays of DialOptions bring clients back as soon as gRPC's own, if the server is
// done with all of them before the first one gives up.
func TestHandshakes(t *testing.T) {
	shown := report.Table{
		Title:   "When 99 % of 10,000 clients are back, at a server that does so many handshakes a second, and the handshakes for each client",
		Columns: []string{"first, longest delay"},
	}
	outages, rates := []time.Duration{10 * time.Second, time.Minute}, []int{1000, 500, 250, 100}
	for _, away := range outages {
		for _, rate := range rates {
			shown.Columns = append(shown.Columns, fmt.Sprintf("away %v s: %d a second", away.Seconds(), rate))
		}
	}
	own := map[string]time.Duration{}
	for _, c := range []backoff.Config{backoff.DefaultConfig, with(0.5, 3), ours, with(0.1, 3), with(0.25, 1), with(0.25, 10)} {
		row := []string{fmt.Sprintf("%v, %v", c.BaseDelay, c.MaxDelay)}
		for _, away := range outages {
			for _, rate := range rates {
				back, each := handshakes(10_000, c, away, rate)
				if back == never {
					row = append(row, "never")
				} else {
					row = append(row, fmt.Sprintf("%.0f s, %.1f", back.Seconds(), each))
				}
				kind := fmt.Sprint(away, " ", rate)
				switch {
				case c == backoff.DefaultConfig:
					own[kind] = back
				case c == ours && rate >= 500 && back > own[kind]:
					t.Errorf("%s: %v; gRPC's own delays bring the clients back after %v", kind, back, own[kind])
				}
			}
		}
		shown.Rows = append(shown.Rows, row)
	}
	kept(t, "handshakes", shown)
}
