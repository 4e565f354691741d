// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stagger-go/stagger/internal/document"
)

// The file is read every pollInterval, and a change counts when two readings in a row agree: a file that is half written
// may be a valid one with fewer entries. So a change is followed within two intervals and the time of a reading.
const (
	pollInterval = 2 * time.Second
	maxHung      = 2  // intervals that a reading may take before that is reported
	maxRestless  = 15 // readings in a row that may differ before that is reported
)

// watch follows a file ([inside.Watch]). It reads the file every two seconds, and a change counts when two readings in a
// row agree: within five seconds. A file that is gone, that cannot be read or whose reading hangs is reported once.
func watch(ctx context.Context, path string, loaded *Set, changed func(*Set, error)) {
	where, err := filepath.Abs(path) // which keeps a link that leads to the working directory
	if err != nil {
		where = path
	}
	f := &follower{path: path, changed: changed, read: func() ([]byte, error) { return document.ReadFile(where) }}
	if loaded != nil {
		f.followed = reading{digest: loaded.digest}
		f.last = f.followed
	}
	go f.run(ctx)
}

// follower reads a file again and again.
type follower struct {
	path     string
	changed  func(*Set, error)
	read     func() ([]byte, error)
	followed reading // what was reported last
	last     reading
	hung     int // intervals that a reading has taken
	restless int // readings in a row that differed from the one before
}

// reading is what two readings of a file are compared by.
type reading struct {
	digest [sha256.Size]byte // of what the file says
	failed bool
}

// result is what a reading has brought.
type result struct {
	data []byte
	err  error
}

func (f *follower) run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	results := make(chan result, 1) // a reading that hangs ends alone, if ever
	reads := false                  // one is under way, and no other
	for {
		if !reads {
			reads = true
			go func() {
				data, err := f.read()
				results <- result{data, err}
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.waitLonger()
			continue
		case r := <-results:
			reads = false
			f.take(r)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// waitLonger reports a reading that hangs.
func (f *follower) waitLonger() {
	if f.hung++; f.hung == maxHung {
		f.fail(fmt.Errorf("%s: cannot be read: reading has taken %v, and goes on", f.path, maxHung*pollInterval))
	}
}

// take reports a change that two readings agree on, and a file that changes all the time.
func (f *follower) take(r result) {
	now := reading{failed: r.err != nil}
	if !now.failed {
		now.digest = sha256.Sum256(r.data)
	}
	before := f.last
	f.last, f.hung = now, 0
	switch {
	case now != before:
		if f.restless++; f.restless == maxRestless {
			f.fail(fmt.Errorf("%s: is not followed: it has changed again and again for %v", f.path, maxRestless*pollInterval))
		}
		return
	case now.failed:
		f.fail(r.err)
	case now != f.followed:
		f.followed = now
		f.changed(Parse(f.path, r.data))
	}
	f.restless = 0
}

// fail reports an error, unless one was reported last.
func (f *follower) fail(err error) {
	if !f.followed.failed {
		f.followed = reading{failed: true}
		f.changed(nil, err)
	}
}
