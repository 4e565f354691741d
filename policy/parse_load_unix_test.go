// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

func TestLoadDevice(t *testing.T) {
	t.Parallel()
	if _, err := policy.Load("/dev/zero"); err == nil || err.Error() != "/dev/zero"+tooLarge {
		t.Errorf("Load = %v; want /dev/zero%s", err, tooLarge)
	}
}

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadPipe(t *testing.T) {
	t.Parallel()
	path := pipe(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := policy.Load(path)
		done <- err
	}()
	// More than a pipe's buffer, so that writing ends only when the pipe is read.
	if _, err := f.WriteString(strings.Repeat("#\n", 40_000) + "maxWaiting: 0\n"); err != nil {
		t.Error(err)
	}
	f.Close()
	want := path + ":40001:13: maxWaiting: 0: must be at least 1; for no retries leave the policies out"
	if err := <-done; err == nil || err.Error() != want {
		t.Errorf("Load = %v; want %s", err, want)
	}
}
