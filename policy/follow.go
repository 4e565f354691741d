// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// A change counts when two consecutive readings agree, because a half-written file may be valid with fewer entries. So a change is reported
// within two intervals and the time of a reading.
const (
	pollInterval = 2 * time.Second
	maxHung      = 2 // intervals after which a hanging read is reported
)

// Follow calls changed after each change of the policy file at path, with the new set, or with an error in the file or in reading it.
// After an error, keep the previous set. Most programs need interceptor.Watch only, which gives each change to its Retrier. Follow is for
// programs that do more with a change.
//
// loaded is the set in use, as [Load] returned it, or nil if there is none. Follow reports content that differs from the content it last reported, or at first from
// that of loaded. After an error in reading the file, it reports the content even if it is the same.
//
// Follow reads the file every two seconds. A change counts when two consecutive readings agree, because a half-written file may be valid:
// Follow reports it within five seconds. A file that is missing, unreadable or a named pipe is an error, and so is a reading that takes
// four seconds. Follow reports such errors once, until a reading succeeds again.
//
// Follow returns at once. It calls changed in a goroutine of its own, one call at a time, until ctx ends: the last call may still run then.
func Follow(ctx context.Context, path string, loaded *Set, changed func(*Set, error)) {
	where, err := filepath.Abs(path) // keeps a link to the working directory
	if err != nil {
		where = path
	}
	f := &follower{path: path, changed: changed, read: func() ([]byte, error) { return readFile(where) }}
	if loaded != nil {
		f.followed = reading{hash: loaded.Hash()}
	}
	f.last = f.followed
	go f.run(ctx)
}

// readFile reads a file, but no named pipe: opening one waits for a writer, if need be for ever, and so hides the file that comes after it.
func readFile(path string) ([]byte, error) {
	if err := document.CheckNoPipe(path); err != nil {
		return nil, err
	}
	return document.ReadFile(path)
}

// follower reads a file repeatedly.
type follower struct {
	path     string
	changed  func(*Set, error)
	read     func() ([]byte, error)
	followed reading // the last reported reading
	last     reading
	hung     int // intervals that the current read has taken
}

// reading has the values by which two readings of a file are compared.
type reading struct {
	hash   string // of the text
	failed bool
}

// result is the result of a reading.
type result struct {
	data []byte
	err  error
}

func (f *follower) run(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	results := make(chan result, 1) // a hanging read ends by itself, if ever
	reads := false                  // a read is running; there is at most one
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

// waitLonger reports a hanging read.
func (f *follower) waitLonger() {
	if f.hung++; f.hung == maxHung {
		f.fail(fmt.Errorf("%s: cannot be read: reading has taken %v, and goes on", f.path, maxHung*pollInterval))
	}
}

// take reports a change that two readings agree on.
func (f *follower) take(r result) {
	now := reading{failed: r.err != nil}
	if !now.failed {
		sum := sha256.Sum256(r.data)
		now.hash = hex.EncodeToString(sum[:6]) // as [Set.Hash]
	}
	before := f.last
	f.last, f.hung = now, 0
	switch {
	case now != before: // it may be half written
	case now.failed:
		f.fail(r.err)
	case now != f.followed:
		f.followed = now
		f.changed(Parse(f.path, r.data))
	}
}

// fail reports an error, unless it was the last report.
func (f *follower) fail(err error) {
	if !f.followed.failed {
		f.followed = reading{failed: true}
		f.changed(nil, err)
	}
}
