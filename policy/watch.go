// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/stagger-go/stagger/internal/document"
)

// A changed file is read when nothing in its folder has changed for rest, since editors and ConfigMaps change
// it in several steps; but at the latest after maxRest, since other files in the folder may change all the time.
const (
	rest    = 100 * time.Millisecond
	maxRest = time.Second
)

// Watch calls changed after each change of a policy file, with the new set, or with what is wrong with it or
// in reading it; what the file said before then still holds. loaded is what [Load] made of the file: a change
// since then is a change, too. With nil, the file as it is now counts as the first change. Watch
// notices files that are written in place or put in the place of another, and the swap of links by which
// Kubernetes changes a ConfigMap. A file that says the same as before is no change.
//
// It reports an error if the folder cannot be watched. Otherwise it returns when watching has begun; changed
// is called, one at a time, until ctx ends.
func Watch(ctx context.Context, path string, loaded *Set, changed func(*Set, error)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	// The folder, since a file that is replaced is not the one that was watched.
	if err := w.Add(filepath.Dir(path)); err != nil {
		return errors.Join(err, w.Close())
	}
	f := &follower{path: path, changed: changed}
	if loaded != nil {
		f.known, f.digest = true, loaded.digest
	}
	go func() {
		f.run(ctx, w.Events, w.Errors)
		_ = w.Close() // nothing is left to be done
	}()
	return nil
}

// follower reads a file again when its folder has changed.
type follower struct {
	path    string
	changed func(*Set, error)
	digest  [sha256.Size]byte // of what the file said
	known   bool              // digest holds
	failed  bool              // the file could not be read
}

func (f *follower) run(ctx context.Context, events <-chan fsnotify.Event, failures <-chan error) {
	timer := time.NewTimer(rest) // the file may have changed before watching began
	defer timer.Stop()
	latest := time.Now().Add(maxRest)
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-failures:
			if !errors.Is(err, fsnotify.ErrEventOverflow) { // after which anything may have changed
				f.changed(nil, err)
				continue
			}
		case <-events:
		case <-timer.C:
			latest = time.Time{}
			f.read()
			continue
		}
		if latest.IsZero() {
			latest = time.Now().Add(maxRest)
		}
		timer.Reset(min(rest, time.Until(latest)))
	}
}

// read tells of a change, and once of a file that cannot be read: one that is being replaced may be away for a
// moment.
func (f *follower) read() {
	data, err := document.ReadFile(f.path)
	if err != nil {
		if !f.failed {
			f.changed(nil, err)
		}
		f.failed, f.known = true, false
		return
	}
	f.failed = false
	if digest := sha256.Sum256(data); !f.known || digest != f.digest {
		f.known, f.digest = true, digest
		f.changed(Parse(f.path, data))
	}
}
