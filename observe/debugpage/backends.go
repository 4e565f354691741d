// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
)

const (
	// backendMinutes is for how long attempts at a backend are counted.
	backendMinutes = 10
	// maxKnown bounds the backends that are counted, and maxBackends those that the page shows.
	maxKnown    = 1000
	maxBackends = 64
)

// backend is an address that gRPC has named, of a target. Behind a proxy or a virtual address it is that one's.
type backend struct{ target, address string }

// backendCounts are of attempts that have ended.
type backendCounts struct{ attempts, failed, slow uint64 }

// backendRecord has the attempts of the last minutes.
type backendRecord struct {
	minutes [backendMinutes]backendCounts // of minute m at m modulo their number
	newest  int64                         // minute
	seen    time.Time
}

// backendTable counts the attempts of a Retrier by backend.
type backendTable struct {
	mu      sync.Mutex // guards all below
	began   time.Time
	records map[backend]*backendRecord
}

// note counts an attempt that has ended.
func (t *backendTable) note(e interceptor.Event, now time.Time) {
	if e.Peer == nil {
		return // it has reached none
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of := backend{e.Target, e.Peer.String()}
	r := t.records[of]
	if r == nil {
		r = t.add(of, now)
		if r == nil {
			return
		}
	}
	r.advance(t.minute(now))
	r.seen = now
	c := &r.minutes[r.newest%backendMinutes]
	c.attempts++
	if failed(e.Code) {
		c.failed++
	}
	if e.SlowAttempt {
		c.slow++
	}
}

// add makes a record, if there is a place. Backends without attempts in the last minutes leave theirs. t.mu must be held.
func (t *backendTable) add(of backend, now time.Time) *backendRecord {
	if t.records == nil {
		t.records = map[backend]*backendRecord{}
		t.began = now
	}
	if len(t.records) >= maxKnown {
		t.dropOld(now)
	}
	if len(t.records) >= maxKnown {
		return nil
	}
	r := &backendRecord{newest: t.minute(now)}
	t.records[of] = r
	return r
}

// dropOld drops the backends that were not seen for all of the minutes. t.mu must be held.
func (t *backendTable) dropOld(now time.Time) {
	maps.DeleteFunc(t.records, func(_ backend, r *backendRecord) bool { return now.Sub(r.seen) > backendMinutes*time.Minute })
}

// minute returns the number of a minute. t.mu must be held.
func (t *backendTable) minute(now time.Time) int64 { return int64(now.Sub(t.began) / time.Minute) }

// advance makes a minute the newest.
func (r *backendRecord) advance(minute int64) {
	for r.newest < minute {
		r.newest++
		r.minutes[r.newest%backendMinutes] = backendCounts{}
		if minute-r.newest > backendMinutes {
			r.newest = minute - backendMinutes
		}
	}
}

// backendState is the data about a backend: the attempts of the last ten minutes.
type backendState struct {
	Target   string    `json:"target"`
	Address  string    `json:"address"`
	Attempts uint64    `json:"attempts"`
	Failed   uint64    `json:"failed"` // by a code that says something of the service
	Slow     uint64    `json:"slow"`   // they took longer than their own time, whatever they returned
	Seen     time.Time `json:"seen"`   // the end of the last one
}

// states returns the backends with most slow attempts, then with most failed ones, and how many others there are.
func (t *backendTable) states(now time.Time) (shown []backendState, others int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropOld(now)
	shown = []backendState{} // [] in JSON, not null
	for of, r := range t.records {
		r.advance(t.minute(now))
		s := backendState{Target: of.target, Address: of.address, Seen: r.seen.UTC()}
		for _, c := range r.minutes {
			s.Attempts += c.attempts
			s.Failed += c.failed
			s.Slow += c.slow
		}
		shown = append(shown, s)
	}
	slices.SortFunc(shown, func(a, b backendState) int {
		return cmp.Or(cmp.Compare(b.Slow, a.Slow), cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Address, b.Address))
	})
	all := len(shown)
	shown = shown[:min(all, maxBackends)]
	return shown, all - len(shown)
}

// failed reports whether a code says that the service has failed, and not the request. CANCELLED is of attempts that lost, too.
func failed(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented:
		return true
	default:
		return false
	}
}
