// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// The file is read every pollInterval. A change counts when two consecutive readings agree, because a half-written file may be
// valid with fewer entries. So a change takes effect within two intervals and the time of a reading.
const (
	pollInterval = 2 * time.Second
	maxHung      = 2 // intervals after which a hanging read is reported
)

// follow calls changed after each change of a policy file, with the new set or an error in the file or in reading it; after an
// error, the previous set stays valid. loaded is the set that [policy.Load] returned: later changes of the file count. A file with
// unchanged content does not count, unless an error was reported since. The file is read every two seconds, and a change counts when
// two consecutive readings agree: within five seconds. A file that is missing, unreadable or hangs is reported once. follow returns at
// once. It calls changed, one call at a time, until ctx ends.
func follow(ctx context.Context, path string, loaded *policy.Set, changed func(*policy.Set, error)) {
	where, err := filepath.Abs(path) // keeps a link to the working directory
	if err != nil {
		where = path
	}
	f := &follower{path: path, changed: changed, read: func() ([]byte, error) { return readFile(where) }}
	f.followed = reading{hash: loaded.Hash()}
	f.last = f.followed
	go f.run(ctx)
}

// readFile reads a file, but no named pipe: opening one waits for a writer, if need be for ever, and so hides the file that comes after it.
func readFile(path string) ([]byte, error) {
	if err := checkNoPipe(path); err != nil {
		return nil, err
	}
	return document.ReadFile(path)
}

// checkNoPipe returns an error for a named pipe.
func checkNoPipe(path string) error {
	if is, err := os.Stat(path); err == nil && is.Mode()&os.ModeNamedPipe != 0 {
		return fmt.Errorf("%s: is a named pipe: must be a file, which can be read again and again", path)
	}
	return nil
}

// follower reads a file repeatedly.
type follower struct {
	path     string
	changed  func(*policy.Set, error)
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
		now.hash = hex.EncodeToString(sum[:6]) // as policy.Set.Hash
	}
	before := f.last
	f.last, f.hung = now, 0
	switch {
	case now != before: // it may be half written
	case now.failed:
		f.fail(r.err)
	case now != f.followed:
		f.followed = now
		f.changed(policy.Parse(f.path, r.data))
	}
}

// fail reports an error, unless it was the last report.
func (f *follower) fail(err error) {
	if !f.followed.failed {
		f.followed = reading{failed: true}
		f.changed(nil, err)
	}
}
