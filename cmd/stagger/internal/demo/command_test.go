// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := Command()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestHelp(t *testing.T) {
	t.Parallel()
	out, err := execute(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stagger demo --seed 7", "--policy file", "--seed number"} {
		if !strings.Contains(out, want) {
			t.Errorf("help lacks %q:\n%s", want, out)
		}
	}
}

func TestBadPolicyFileIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := execute(t, "--policy", filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: error %v; want fs.ErrNotExist", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("retries: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := execute(t, "--policy", bad)
	if _, ok := errors.AsType[*policy.Error](err); !ok {
		t.Errorf("bad file: error %v; want a *policy.Error", err)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"today"}, {"--seed", "-1"}, {"--speed", "2"}} {
		if _, err := execute(t, args...); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}
