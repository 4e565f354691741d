// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// world has the servers, a Retrier that follows a file, connections, and calls.
type world struct {
	*faults
	*chance

	file    string
	servers []*testserver.Server
	ledger  *ledger
	running running
	counts  counts
	begun   atomic.Int64 // calls reported to observers
	ended   atomic.Int64
	extra   atomic.Int64    // attempts after the first
	events  [4]atomic.Int64 // reloads, refused files, replaced connections, replaced Retriers

	loads sync.Mutex // held while the file is invalid, and while a new Retrier reads it

	mu      sync.RWMutex // guards all below
	retrier *interceptor.Retrier
	stop    context.CancelFunc // of the Retrier's watch
	conns   []*grpc.ClientConn
}

const (
	eventReload = iota
	eventRefused
	eventConn
	eventRetrier
)

// newWorld returns a world, whose policy file is in a folder.
func newWorld(folder string, seed uint64) (*world, error) {
	ratio, err := budget.New(budget.RatioConfig{Percent: 50, MinPerSecond: 10, Window: 2 * time.Second, TimeoutCost: 2})
	if err != nil {
		return nil, err
	}
	f := newFaults()
	w := &world{
		faults: f, chance: newChance(seed), file: filepath.Join(folder, "retry.yaml"),
		ledger: &ledger{Budget: ratio, faults: f, open: map[int64]budget.Permit{}},
	}
	if err := os.WriteFile(w.file, []byte(w.document()), 0o644); err != nil {
		return nil, err
	}
	for range 3 {
		s, err := w.startServer()
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.servers = append(w.servers, s)
	}
	return w, w.replaceRetrier()
}

// replaceRetrier creates a new Retrier and its connections, like a starting process, and closes the old ones during calls.
func (w *world) replaceRetrier() error {
	ctx, stop := context.WithCancel(context.Background())
	w.loads.Lock()
	r, err := interceptor.Watch(ctx, w.file, interceptor.WithBudget("ledger", w.ledger),
		interceptor.WithMaxReplayBytes(64<<10), interceptor.WithObserver(w.observer()))
	w.loads.Unlock()
	if err != nil {
		stop()
		return err
	}
	var conns []*grpc.ClientConn
	for range 3 {
		conn, err := w.dial(r)
		if err != nil {
			stop()
			return err
		}
		conns = append(conns, conn)
	}
	w.mu.Lock()
	oldRetrier, oldStop, oldConns := w.retrier, w.stop, w.conns
	w.retrier, w.stop, w.conns = r, stop, conns
	w.mu.Unlock()
	if oldRetrier != nil {
		oldStop()
		oldRetrier.Close()
		closeAll(oldConns)
	}
	return nil
}

func closeAll(conns []*grpc.ClientConn) {
	for _, conn := range conns {
		_ = conn.Close() // only a second close fails
	}
}

// dial connects to all servers, and reconnects soon to lost ones.
func (w *world) dial(r *interceptor.Retrier) (*grpc.ClientConn, error) {
	return testserver.DialAll(w.servers, append(r.DialOptions(), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           grpcbackoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
		MinConnectTimeout: time.Second,
	}))...)
}

// observer counts its events.
func (w *world) observer() interceptor.Observer {
	return interceptor.Observer{
		CallStart: func(ctx context.Context, _ interceptor.Event) context.Context {
			w.begun.Add(1)
			return ctx
		},
		Call: func(_ context.Context, e interceptor.Event) {
			w.ended.Add(1)
			w.extra.Add(int64(max(e.Attempt-1, 0)))
			if e.Attempt > defaults.MaxAttempts {
				w.add("too many attempts", "%d of a call of %s", e.Attempt, e.Method)
			}
		},
		Reload: func(_ *policy.Set, _ []string, err error) {
			if err != nil {
				w.events[eventRefused].Add(1)
			} else {
				w.events[eventReload].Add(1)
			}
		},
		Diagnostic: func(policy.Diagnostic) {},
	}
}

// repeat calls a function after random times, again and again, until the context ends.
func (w *world) repeat(ctx context.Context, each time.Duration, do func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(each/2 + w.upTo(each))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			do()
		}
	}
}

// trouble lists the faults while calls go on.
func (w *world) trouble(ctx context.Context) []func() {
	return []func(){
		func() { w.repeat(ctx, 400*time.Millisecond, w.reload) },
		func() { w.repeat(ctx, 5*time.Second, w.changeFile) },
		func() { w.repeat(ctx, time.Second, w.loseServer) },
		func() { w.repeat(ctx, 1500*time.Millisecond, w.replaceConn) },
		func() {
			w.repeat(ctx, 4*time.Second, func() {
				if err := w.replaceRetrier(); err != nil {
					w.add("a Retrier cannot be made", "%v", err)
				}
				w.events[eventRetrier].Add(1)
			})
		},
	}
}

// changeFile writes another file. If that is invalid, as it is sometimes, the old policies stay in force.
func (w *world) changeFile() {
	if w.of(0.2) {
		w.breakFile()
	}
	w.writeFile(w.document())
}

// reload gives the Retrier other policies. If they are invalid, as they are sometimes, the old ones stay in force.
func (w *world) reload() {
	if w.of(0.3) {
		set, err := policy.Parse("reload.yaml", []byte(w.document()))
		if err == nil {
			w.mu.RLock()
			err = w.retrier.Reload(set)
			w.mu.RUnlock()
		}
		if err != nil {
			w.add("a good policy is refused", "%v", err)
		}
	}
	if w.of(0.2) {
		w.mu.RLock()
		err := w.retrier.Reload(nil)
		w.mu.RUnlock()
		if err == nil {
			w.add("a bad policy is taken", "none at all")
		}
	}
}

// breakFile makes the file invalid for some time: the old policies stay in force.
func (w *world) breakFile() {
	w.loads.Lock()
	defer w.loads.Unlock()
	w.writeFile(w.document() + "nonsense: true\n")
	timer := time.NewTimer(5 * time.Second) // long enough for a watch to follow it
	defer timer.Stop()
	<-timer.C
	w.writeFile(w.document())
}

func (w *world) writeFile(text string) {
	if err := replaceFile(w.file, text); err != nil {
		w.add("the file cannot be written", "%v", err)
	}
}

// loseServer stops a server for some time.
func (w *world) loseServer() {
	s := pick(w.chance, w.servers)
	s.Down()
	timer := time.NewTimer(w.upTo(200 * time.Millisecond))
	defer timer.Stop()
	<-timer.C
	s.Up()
}

// replaceConn closes a connection during calls, and opens a new one.
func (w *world) replaceConn() {
	w.mu.Lock()
	conn, err := w.dial(w.retrier)
	if err != nil {
		w.mu.Unlock()
		w.add("a connection cannot be made", "%v", err)
		return
	}
	i := int(w.float() * float64(len(w.conns)))
	old := w.conns[i]
	w.conns[i] = conn
	w.mu.Unlock()
	closeAll([]*grpc.ClientConn{old})
	w.events[eventConn].Add(1)
}

// close stops everything.
func (w *world) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
	closeAll(w.conns)
	for _, s := range w.servers {
		s.Close()
	}
	return nil
}

// settled returns what calls have left behind after their ends, or "".
func (w *world) settled() string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if n := w.retrier.State().Waiting; n != 0 {
		return fmt.Sprintf("%d calls wait", n)
	}
	if permits, calls := w.ledger.left(); permits != 0 || calls != 0 {
		return fmt.Sprintf("%d permits are out, and %d calls not finished", permits, calls)
	}
	if begun, ended := w.begun.Load(), w.ended.Load(); begun != ended {
		return fmt.Sprintf("observers were told of %d calls that began and %d that ended", begun, ended)
	}
	for _, b := range w.retrier.State().Budgets {
		if (b.Name == "ratio" || b.Name == "concurrent" || b.Name == "ledger") && b.Balance < 0.99*b.Capacity {
			return fmt.Sprintf("the balance of %s is %.1f of %.1f", b.Name, b.Balance, b.Capacity)
		}
	}
	for _, a := range inside.Admission(w.retrier) {
		if a.Running != 0 {
			return fmt.Sprintf("admission counts %d attempts of %s", a.Running, a.Method)
		}
	}
	return ""
}
