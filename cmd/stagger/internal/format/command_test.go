// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/misuse"
)

const (
	tidy  = "maxWaiting: 5\n"
	messy = "maxWaiting:   5\n"
)

// run is the command's output and error. in is its standard input.
func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := Command()
	c.SetArgs(args)
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

// files makes two of them, the first in another layout.
func files(t *testing.T) (a, b string) {
	t.Helper()
	dir := t.TempDir()
	a, b = filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	for file, text := range map[string]string{a: messy, b: tidy} {
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func TestTheResultIsPrinted(t *testing.T) {
	t.Parallel()
	a, b := files(t)
	if got, err := run(t, "", a, b); err != nil || got != tidy+tidy {
		t.Errorf("%v\n%s", err, got)
	}
	for _, args := range [][]string{nil, {"-"}} {
		if got, err := run(t, messy, args...); err != nil || got != tidy {
			t.Errorf("%q: %v\n%s", args, err, got)
		}
	}
	if string(read(t, a)) != messy {
		t.Error("the file has been written")
	}
}

func TestFilesAreWrittenIfAskedFor(t *testing.T) {
	t.Parallel()
	a, b := files(t)
	if got, err := run(t, "", "-w", a, b); err != nil || got != "" || string(read(t, a)) != tidy {
		t.Errorf("%v: %s%s", err, got, read(t, a))
	}
	if info, err := os.Stat(a); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v: the permissions have changed", info, err)
	}
	if _, err := run(t, messy, "-w", "-"); misuse.ExitCode(err) != misuse.NotUnderstood {
		t.Errorf("%v; want a misuse", err)
	}
	if _, err := run(t, "", "-w", "--check", a); misuse.ExitCode(err) != misuse.NotUnderstood {
		t.Errorf("%v; want a misuse", err)
	}
}

func TestAWorkflowIsTold(t *testing.T) {
	t.Parallel()
	a, b := files(t)
	if got, err := run(t, "", "--check", a, b); got != a+"\n" || err == nil || !strings.HasPrefix(err.Error(), "1 of 2 files") {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err := run(t, "", "--check", b); err != nil || got != "" {
		t.Errorf("%v\n%s", err, got)
	}
	want := "--- " + a + "\n+++ " + a + " formatted\n@@ -1 +1 @@\n-" + messy + "+" + tidy
	if got, err := run(t, "", "-d", a, b); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if got, err := run(t, "", "-d", "--check", a); err == nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if string(read(t, a)) != messy {
		t.Error("the file has been written")
	}
}

func TestAFileThatIsRefusedStopsNoOther(t *testing.T) {
	t.Parallel()
	a, b := files(t)
	if err := os.WriteFile(b, []byte("retries: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(filepath.Dir(a), "none.yaml")
	_, err := run(t, "", "-w", b, none, a)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "b.yaml:1:1: retries: unknown key") {
		t.Errorf("%v; want both mistakes", err)
	}
	if string(read(t, a)) != tidy {
		t.Error("the third file was not formatted")
	}
}
