// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"
)

var write = flag.String("write", "", "write what was counted to this `file`, if all tests passed")

func TestMain(m *testing.M) {
	if port := os.Getenv(frozenEnv); port != "" {
		fmt.Fprintln(os.Stderr, serveBackend(port))
		os.Exit(1)
	}
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // policies of these tests retry undeclared methods, which causes warnings
	code := m.Run()
	if *write != "" && code == 0 {
		if err := evidence.write(*write, "results.md"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// required skips a test of installed software unless `make interop` runs it.
func required(t *testing.T) {
	t.Helper()
	if os.Getenv("STAGGER_INTEROP") == "" {
		t.Skip("it needs software of others; `make interop` installs that and runs it")
	}
}

// await polls until done returns true, and fails the test at the limit. These tests use it to wait for other processes.
func await(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// pass waits in real time, while load goes on.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
