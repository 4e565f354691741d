// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must rest before it is read again: editors and ConfigMaps change it in several
// steps.
const settle = 100 * time.Millisecond

// Watch calls changed after each change of a policy file, with the new set, or with what is wrong with it or
// in reading it; what the file said before then still holds. It notices files that are written in place or
// put in the place of another, and the swap of links by which Kubernetes changes a ConfigMap. A file that
// says the same as before is no change.
//
// It reports an error if the folder cannot be watched. Otherwise it returns when watching has begun; changed
// is called, one at a time, until ctx ends.
func Watch(ctx context.Context, path string, changed func(*Set, error)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	// The folder, since a file that is replaced is not the one that was watched.
	if err := w.Add(filepath.Dir(path)); err != nil {
		_ = w.Close()
		return err
	}
	said, _ := readFile(path)
	go watch(ctx, w, path, said, changed)
	return nil
}

func watch(ctx context.Context, w *fsnotify.Watcher, path string, said []byte, changed func(*Set, error)) {
	defer w.Close()               //nolint:errcheck // nothing is left to be done
	rest := time.NewTimer(settle) // what changed before watching began
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			changed(nil, err)
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			rest.Reset(settle)
		case <-rest.C:
			data, err := readFile(path)
			switch {
			case err != nil && said != nil: // once; a file that is being replaced may be away for a moment
				changed(nil, err)
				said = nil
			case err == nil && (said == nil || !bytes.Equal(data, said)):
				changed(Parse(path, data))
				said = data
			}
		}
	}
}
