// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// remote is a file on another machine.
type remote struct {
	mu      sync.Mutex // guards all below
	away    chan struct{}
	text    string
	reads   int
	reports []string
}

func (r *remote) read() ([]byte, error) {
	r.mu.Lock()
	r.reads++
	away := r.away
	r.mu.Unlock()
	if away != nil {
		<-away
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return []byte(r.text), nil
}

// set changes the file's text, and whether reading it hangs.
func (r *remote) set(text string, hangs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away != nil {
		close(r.away)
	}
	r.text, r.away, r.reads, r.reports = text, nil, 0, nil
	if hangs {
		r.away = make(chan struct{})
	}
}

func (r *remote) wants(t *testing.T, d time.Duration, reads int, reports ...string) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads != reads || !slices.Equal(r.reports, reports) {
		t.Errorf("%d readings, reported %q; want %d, %q", r.reads, r.reports, reads, reports)
	}
}

// A read may hang, for example of a pipe or of an unreachable file server.
func TestFollower_ReadingHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := new(remote)
		r.set("maxWaiting: 7", false)
		f := &follower{path: "retry.yaml", read: r.read, changed: func(s *Set, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			report := fmt.Sprint(time.Since(began), " ", err)
			if err == nil {
				report = fmt.Sprint(time.Since(began), " ", s.compiled.MaxWaiting)
			}
			r.reports = append(r.reports, report)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go f.run(ctx)
		r.wants(t, 9*time.Second, 5, "2s 7")
		r.set("maxWaiting: 7", true)
		r.wants(t, time.Minute, 1, "14s retry.yaml: cannot be read: reading has taken 4s, and goes on")
		r.set("maxWaiting: 8", false)
		r.wants(t, 10*time.Second, 5, "1m10s 8")
		r.set("maxWaiting: 8", true)
		r.wants(t, time.Minute, 1, "1m24s retry.yaml: cannot be read: reading has taken 4s, and goes on")
		r.set("maxWaiting: 8", false) // as before, and still reported after a failure
		r.wants(t, 10*time.Second, 5, "2m19s 8")
		r.set("maxWaiting: 9", true)
		r.wants(t, 3*time.Second, 1)
		cancel() // run ends while a read hangs
		r.set("maxWaiting: 9", false)
		r.wants(t, time.Minute, 0)
	})
}

// Consecutive reads that fail for different reasons are one failure.
func TestFollower_ReportsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, reports := 0, []string{}
		f := &follower{path: "retry.yaml", read: func() ([]byte, error) {
			n++
			return nil, fmt.Errorf("failure %d: %w", n, errors.ErrUnsupported)
		}, changed: func(_ *Set, err error) { reports = append(reports, err.Error()) }}
		ctx, cancel := context.WithCancel(t.Context())
		go f.run(ctx)
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		if want := []string{"failure 2: unsupported operation"}; !slices.Equal(reports, want) {
			t.Errorf("reported %q; want %q", reports, want)
		}
	})
}
