// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// TestProcessEndsOnSignal is the command as its users have it.
func TestProcessEndsOnSignal(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "stagger")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := file(t, "faults.yaml", `scripts: [{method: "*", steps: [{fail: {code: DATA_LOSS}}]}]`)
	c := exec.CommandContext(t.Context(), binary, "faultserver", "--listen", "localhost:0", "--script", script)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(first, "listening on "), ",")
	conn := dial(t, address)
	if code := call(t, conn); code != codes.DataLoss {
		t.Errorf("got %v; want DATA_LOSS", code)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "DATA_LOSS 1 │") {
		t.Errorf("%v: got\n%s\nwant a table", err, rest)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the process ended with %v; want exit code 0", err)
	}
}
