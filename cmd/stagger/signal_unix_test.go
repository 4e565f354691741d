// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

// TestSignalEndsReading interrupts commands that read endless input.
func TestSignalEndsReading(t *testing.T) {
	t.Parallel()
	const file = "../../examples/orders/retry.yaml"
	for _, line := range []string{
		"lint -", "export -", "explain - a.B/C", "explain - --all",
		"lint PIPE", "demo --policy PIPE", "simulate overload --policy PIPE", "simulate PIPE", "explain " + file + " --all --descriptors PIPE",
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(line+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				pipe := filepath.Join(t.TempDir(), "pipe.yaml")
				testkit.NoError(t, syscall.Mkfifo(pipe, 0o600))
				w, err := os.OpenFile(pipe, os.O_RDWR, 0) // does not wait for a reader
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				c := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(strings.ReplaceAll(line, "PIPE", pipe))...)
				c.Env = append(os.Environ(), asCommand+"=1")
				if !strings.Contains(line, "PIPE") {
					if c.Stdin, err = os.Open(pipe); err != nil {
						t.Fatal(err)
					}
				}
				testkit.NoError(t, c.Start())
				// More than a pipe holds, so that writing ends only when it is being read.
				testkit.Must(w.WriteString(strings.Repeat("#\n", 40_000)))(t)
				testkit.NoError(t, c.Process.Signal(signal))
				_ = c.Wait() // which is the test: the pipe stays open
				if s, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != signal {
					t.Errorf("%v; want the end by %v", c.ProcessState, signal)
				}
			})
		}
	}
}
