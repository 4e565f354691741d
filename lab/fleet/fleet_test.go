// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package fleet plays 10 to 100,000 clients in virtual time that make a thousand calls a second in all, and compares where the
// reserve of their budgets can come from: from each client itself, from nowhere, or from a pool on Redis. The budgets are those of
// production, and Redis answers with its script. Calls, network and time are a model.
package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	lua "github.com/yuin/gopher-lua"
	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var write = flag.Bool("write", false, "play up to 100,000 clients, and write the tables")

const (
	ms        = time.Millisecond
	rate      = 1000.0           // calls in a second, of all clients
	poolRate  = 100.0            // extra attempts in a second, of all clients
	calm      = 15 * time.Second // longer than a window of the budgets, and than a lease
	trouble   = 30 * time.Second // that is counted
	randomly  = 0.03             // part of the requests that fails
	attempts  = 4
	answersIn = 10 * ms
)

// scheme defines the source of the reserve of clients' budgets.
type scheme struct {
	name    string
	own     bool          // each client has the default budget
	pooled  bool          // the clients share a pool
	latency time.Duration // of Redis, on average
	loss    float64       // part of the requests to Redis that fails
}

var schemes = []scheme{
	{name: "own", own: true},
	{name: "none"},
	{name: "pool, Redis 1 ms", pooled: true, latency: ms},
	{name: "pool, 20 ms", pooled: true, latency: 20 * ms},
	{name: "pool, 20 ms, 1 % lost", pooled: true, latency: 20 * ms, loss: 0.01},
}

// store is Redis, and the network before it.
type store struct {
	redis.Scripter

	scheme  scheme
	mu      sync.Mutex // guards all below
	chance  *rand.Rand
	state   *lua.LState
	script  *lua.LFunction
	hash    map[string]lua.LValue
	scripts int
}

func newStore(t *testing.T, s scheme) *store {
	t.Helper()
	r := &store{scheme: s, chance: rand.New(rand.NewPCG(1, 5)), state: lua.NewState(), hash: map[string]lua.LValue{}}
	text := testkit.Must(os.ReadFile("../../budget/redisbudget/lease.lua"))(t)
	r.script = testkit.Must(r.state.LoadString(string(text)))(t)
	commands := r.state.NewTable()
	r.state.SetField(commands, "call", r.state.NewFunction(r.call))
	r.state.SetGlobal("redis", commands)
	return r
}

// call runs a command of the script.
func (r *store) call(l *lua.LState) int {
	list := l.NewTable()
	switch l.CheckString(1) {
	case "TIME":
		now := time.Now()
		list.Append(lua.LNumber(now.Unix()))
		list.Append(lua.LNumber(now.Nanosecond() / 1000))
	case "HMGET":
		for i := 3; i <= l.GetTop(); i++ {
			if v := r.hash[l.CheckString(i)]; v != nil {
				list.RawSetInt(i-2, v)
			} else {
				list.RawSetInt(i-2, lua.LFalse)
			}
		}
	case "HSET":
		for i := 3; i < l.GetTop(); i += 2 {
			r.hash[l.CheckString(i)] = lua.LString(lua.LVAsString(l.Get(i + 1)))
		}
	default: // PEXPIRE
	}
	l.Push(list)
	return 1
}

// EvalSha implements [redis.Scripter].
func (r *store) EvalSha(ctx context.Context, _ string, keys []string, args ...any) *redis.Cmd {
	r.mu.Lock()
	lost := r.chance.Float64()
	// Half of the latency is constant, and the rest is random: one in a hundred takes three times the average.
	there := time.Duration((0.5 + 0.5*r.chance.ExpFloat64()) * float64(r.scheme.latency) / 2)
	r.mu.Unlock()
	if lost >= r.scheme.loss/2 {
		time.Sleep(there)
		tokens, clients := r.run(keys[0], args)
		if lost >= r.scheme.loss {
			time.Sleep(there)
			return redis.NewCmdResult([]any{tokens, clients}, nil)
		}
	}
	<-ctx.Done()
	return redis.NewCmdResult(nil, ctx.Err())
}

// run runs the script.
func (r *store) run(key string, args []any) (tokens int64, clients string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names, values := r.state.NewTable(), r.state.NewTable()
	names.Append(lua.LString(key))
	for _, a := range args {
		values.Append(lua.LString(fmt.Sprint(a)))
	}
	r.state.SetGlobal("KEYS", names)
	r.state.SetGlobal("ARGV", values)
	r.state.Push(r.script)
	r.state.Call(0, 1)
	answer := r.state.CheckTable(-1)
	r.state.Pop(1)
	tokens = int64(lua.LVAsNumber(answer.RawGetInt(1)))
	r.scripts++
	return tokens, lua.LVAsString(answer.RawGetInt(2))
}

// figures are the results of a fleet under one kind of trouble.
type figures struct {
	calls, requests, succeeded int
	asked, refused             int     // retries
	scripts                    float64 // a second
}

// world is a fleet in virtual time.
type world struct {
	clients []budget.Budget
	store   *store

	mu     sync.Mutex // guards all below
	chance *rand.Rand
	part   float64 // of the requests that fails now
}

func (w *world) draw() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance.Float64()
}

func (w *world) fails() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance.Float64() < w.part
}

// call makes a call, whose budget pays for retries.
func (w *world) call(b budget.Budget, into *figures) {
	var f figures
	end := budget.EventCallFailed
	var ended func(time.Time, budget.End)
	for n := 1; ; n++ {
		f.requests++
		time.Sleep(answersIn)
		failed := w.fails()
		if !failed {
			end, f.succeeded = budget.EventCallSucceeded, 1
		}
		if ended != nil {
			how := budget.EndHelped
			if failed {
				how = budget.EndFailed
			}
			ended(time.Now(), how)
		}
		if !failed {
			break
		}
		b.Observe(time.Now(), budget.EventAttemptFailed)
		if n == attempts {
			break
		}
		f.asked++
		var answer budget.Answer
		answer, ended = b.Allow(time.Now(), budget.CauseFailure)
		if answer != budget.Yes {
			f.refused++
			break
		}
		time.Sleep(time.Duration(w.draw() * float64(min(100*ms<<(n-1), time.Second))))
	}
	b.Observe(time.Now(), end)
	if into != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		into.calls++
		into.requests += f.requests
		into.succeeded += f.succeeded
		into.asked += f.asked
		into.refused += f.refused
	}
}

// suffer makes a part of the requests fail, and counts the calls that begin in that time.
func (w *world) suffer(part float64, calls *sync.WaitGroup) *figures {
	run := func(d time.Duration, part float64, into *figures) {
		w.mu.Lock()
		w.part = part
		w.mu.Unlock()
		for end := time.Now().Add(d); time.Now().Before(end); {
			b := w.clients[int(w.draw()*float64(len(w.clients)))]
			calls.Go(func() { w.call(b, into) })
			w.mu.Lock()
			pause := time.Duration(w.chance.ExpFloat64() / rate * float64(time.Second))
			w.mu.Unlock()
			time.Sleep(pause)
		}
	}
	run(calm, 0, nil)
	f := new(figures)
	scripts := w.store.scripts
	run(trouble, part, f)
	f.scripts = float64(w.store.scripts-scripts) / trouble.Seconds()
	calls.Wait()
	return f
}

// play takes a fleet through random failures and an outage.
func play(t *testing.T, s scheme, clients int) (random, outage *figures) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{store: newStore(t, s), chance: rand.New(rand.NewPCG(1, 1))}
		bucket := budget.Default()
		if !s.own {
			bucket.Size = 0
		}
		ramp := max(time.Minute, time.Duration(clients)*time.Second/500) // they start one after the other
		for range clients {
			if !s.pooled {
				w.clients = append(w.clients, testkit.Must(budget.New(bucket))(t))
				continue
			}
			b := testkit.Must(redisbudget.New(w.store, redisbudget.Config{Pool: "orders", PerSecond: poolRate, Bucket: bucket}))(t)
			defer b.Close()
			w.clients = append(w.clients, b.Budget(""))
			time.Sleep(ramp / time.Duration(clients))
		}
		if s.pooled {
			time.Sleep(ramp) // until Redis knows their number
		}
		var calls sync.WaitGroup
		random = w.suffer(randomly, &calls)
		outage = w.suffer(1, &calls)
	})
	return random, outage
}

// A pool bounds what a fleet sends in an outage, at a tolerable number of scripts, whatever the number of clients; the figures
// are those of results.md, and some of docs/evidence/fleet.md.
func TestTables(t *testing.T) {
	sizes := []int{10, 100, 1_000, 10_000}
	if *write {
		sizes = append(sizes, 100_000)
	}
	kinds := []struct {
		title     string
		tolerance float64
		of        func(s scheme, random, outage *figures) string
	}{
		{"Success while 3 % of the requests fail, %", 0.3, func(_ scheme, f, _ *figures) string {
			return fmt.Sprintf("%.2f", 100*float64(f.succeeded)/float64(f.calls))
		}},
		{"Retries refused meanwhile, %", 8, func(_ scheme, f, _ *figures) string {
			return fmt.Sprintf("%.0f", 100*float64(f.refused)/float64(f.asked))
		}},
		{"Requests a call while all fail", 0.03, func(_ scheme, _, f *figures) string { return fmt.Sprintf("%.2f", float64(f.requests)/float64(f.calls)) }},
		{"Scripts a second at Redis, at most", 40, func(s scheme, r, o *figures) string {
			if !s.pooled {
				return "–"
			}
			return fmt.Sprintf("%.0f", max(r.scripts, o.scripts))
		}},
	}
	const results, page, guide = "results.md", "../../docs/evidence/fleet.md", "../../budget/redisbudget/README.md"
	tables, off := make([]report.Table, len(kinds)), make([]map[string][]terminal.Off, len(kinds))
	for i, k := range kinds {
		tables[i], off[i] = report.Table{Title: k.title, Columns: []string{"reserve"}}, map[string][]terminal.Off{}
		for column, n := range sizes {
			name := thousands(n)
			if column == 0 {
				name += " clients"
			}
			tables[i].Columns, off[i][name] = append(tables[i].Columns, name), []terminal.Off{{Abs: k.tolerance}}
		}
	}
	refused := report.Table{
		Title:   "Retries refused with a pool while 3 % of the requests fail, of clients that make 1,000 calls a second in all",
		Columns: []string{"clients", "retries refused, %"},
	}
	decides := report.Table{
		Title:   "Requests a call while all fail, and retries refused while 3 % of the requests fail",
		Columns: tables[0].Columns,
	}
	for _, s := range schemes {
		for i := range tables {
			tables[i].Rows = append(tables[i].Rows, []string{s.name})
		}
		for _, n := range sizes {
			random, outage := play(t, s, n)
			t.Logf("%s, %d clients: %+v; all fail: %+v", s.name, n, random, outage)
			if perCall := float64(outage.requests) / float64(outage.calls); s.pooled &&
				(perCall > 1.15 || max(random.scripts, outage.scripts) > 2000) {
				t.Errorf("%s, %d clients: %.2f requests a call, %+v", s.name, n, perCall, outage)
			}
			for i, k := range kinds {
				row := &tables[i].Rows[len(tables[i].Rows)-1]
				*row = append(*row, k.of(s, random, outage))
			}
			if s.latency == ms {
				refused.Rows = append(refused.Rows, []string{thousands(n), kinds[1].of(s, random, outage)})
			}
		}
	}
	for i, row := range tables[2].Rows {
		cells := []string{row[0]}
		for k, requests := range row[1:] {
			cells = append(cells, requests+", "+tables[1].Rows[i][1+k]+" %")
		}
		if !strings.Contains(row[0], "20 ms") {
			decides.Rows = append(decides.Rows, cells)
		}
	}
	if *write {
		testkit.NoError(t, errors.Join(terminal.WriteInto(results, "fleet", tables), terminal.WriteInto(page, "fleet", []report.Table{decides}),
			terminal.WriteInto(guide, "fleet", []report.Table{refused})))
		return
	}
	compare := func(path string, table report.Table, off map[string][]terminal.Off) {
		for _, line := range testkit.Must(terminal.Differences(path, "fleet", []report.Table{table}, off))(t) {
			t.Errorf("%s: make fleet writes it", line)
		}
	}
	for i, table := range tables {
		compare(results, table, off[i])
	}
	both := map[string][]terminal.Off{}
	for _, column := range decides.Columns[1:] {
		both[column] = []terminal.Off{{Abs: kinds[2].tolerance}, {Abs: kinds[1].tolerance}}
	}
	compare(page, decides, both)
	compare(guide, refused, map[string][]terminal.Off{refused.Columns[1]: {{Abs: kinds[1].tolerance}}})
}

func thousands(n int) string {
	if text := strconv.Itoa(n); n >= 1000 {
		return text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return strconv.Itoa(n)
}
