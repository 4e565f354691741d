// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

func attemptsFile(n string) []byte {
	return []byte("methodConfig:\n- name: [{service: a.B, method: C}]\n  retryPolicy: {maxAttempts: " + n +
		", initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n")
}

type change struct {
	attempts int // of /a.B/C
	err      error
}

// watched watches a file and hands on what Watch says.
func watched(t *testing.T, path string) <-chan change {
	t.Helper()
	changes := make(chan change, 10)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	loaded, err := policy.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	err = policy.Watch(ctx, path, loaded, func(s *policy.Set, err error) {
		c := change{err: err}
		if err == nil {
			c.attempts = s.Lookup("/a.B/C").MaxAttempts()
		}
		changes <- c
	})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	put(t, path, attemptsFile("2"))
	changes := watched(t, path)
	put(t, path, attemptsFile("3"))
	if c := <-changes; c.attempts != 3 {
		t.Errorf("written in place: %+v", c)
	}
	put(t, path+".new", attemptsFile("4"))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.attempts != 4 {
		t.Errorf("replaced: %+v", c)
	}
	put(t, path, attemptsFile("one"))
	if c := <-changes; c.err == nil {
		t.Errorf("a bad file: %+v", c)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.err == nil {
		t.Errorf("no file: %+v", c)
	}
	put(t, path, attemptsFile("5"))
	if c := <-changes; c.attempts != 5 {
		t.Errorf("back again: %+v", c)
	}
}

// Kubernetes keeps a ConfigMap in a folder of its own, which a link ..data leads to, and puts another link in
// the place of that one.
func TestWatchConfigMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name, attempts string) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name, "retry.yaml"), attemptsFile(attempts))
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version("..1", "2")
	link("..1", "..data")
	link(filepath.Join("..data", "retry.yaml"), "retry.yaml")
	changes := watched(t, filepath.Join(dir, "retry.yaml"))
	version("..2", "3")
	link("..2", "..data_tmp")
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	if c := <-changes; c.attempts != 3 {
		t.Errorf("%+v", c)
	}
}

// Another program may change the file after it was loaded and before it is watched.
func TestWatchChangeSinceLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	put(t, path, attemptsFile("2"))
	loaded, err := policy.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, attemptsFile("3"))
	attempts := make(chan int, 10)
	err = policy.Watch(t.Context(), path, loaded, func(s *policy.Set, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		attempts <- s.Lookup("/a.B/C").MaxAttempts()
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-attempts; got != 3 {
		t.Errorf("%d attempts; want 3", got)
	}
}

func TestWatchMissingFolder(t *testing.T) {
	t.Parallel()
	if err := policy.Watch(t.Context(), filepath.Join(t.TempDir(), "none", "retry.yaml"), nil, nil); err == nil {
		t.Error("watches a folder that is not there")
	}
}
