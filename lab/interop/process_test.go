// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?[-+~.0-9a-z]*`)

// version returns the first version number in a program's own output.
func version(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	number := versionNumber.FindString(string(out))
	if err != nil || number == "" {
		t.Fatalf("%s says no version: %v: %s", name, err, out)
	}
	return number
}

// listening waits until connections are accepted at the address.
func listening(t *testing.T, port int) {
	t.Helper()
	await(t, 10*time.Second, fmt.Sprintf("a listener on port %d", port), func() bool {
		conn, err := net.DialTimeout("tcp", address(port), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// file writes a file that is deleted when the test ends, and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
