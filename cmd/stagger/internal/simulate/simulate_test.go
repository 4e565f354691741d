// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func command(t *testing.T, args ...string) (out, errs string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	c := Command()
	c.SetArgs(args)
	c.SetOut(&o)
	c.SetErr(&e)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func good(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, err := command(t, args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if strings.Contains(errs, "\r") || strings.Contains(errs, "\x1b") {
		t.Errorf("%q: a bar where there is no terminal: %q", args, errs)
	}
	return out
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	out := good(t, "overload")
	contains(t, "the text", out, "an overload that stays\n", "retries without a budget", "never", "failing_everywhere", "capacity ┄ over 27.5s")
	for _, variant := range []string{"no retries", "retries without a budget", "retries with a budget"} {
		if n := strings.Count(out, "\n"+variant+": requests/s at shop"); n != 1 {
			t.Errorf("%d charts of %q; want one", n, variant)
		}
	}
	if strings.Contains(out, "│ users") {
		t.Errorf("the only fleet has a column:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if line != strings.TrimRight(line, " \n")+"\n" {
			t.Errorf("%q ends with a space", line)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	out := good(t, "--list")
	names := builtIn()
	if len(names) < 5 {
		t.Fatalf("%d scenarios; want five at least", len(names))
	}
	for _, name := range names {
		s, err := open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		contains(t, "the list", out, name, s.Title)
	}
}

func TestSeedAndClients(t *testing.T) {
	t.Parallel()
	var r sim.Result
	testkit.NoError(t, json.Unmarshal([]byte(good(t, "broken", "--seed", "9", "--clients", "77", "--format", "json")), &r))
	if r.Seed != 9 || r.Runs[0].Fleets[0].Clients != 77 {
		t.Errorf("seed %d, %d clients; want 9 and 77", r.Seed, r.Runs[0].Fleets[0].Clients)
	}
}

const own = `methodConfig:
  - name: [{service: a.B, method: C}]
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`

func TestPolicyIsOneMoreVariant(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "own.yaml")
	testkit.NoError(t, os.WriteFile(file, []byte(own), 0o600))
	contains(t, "the text", good(t, "chain", "--policy", file, "--method", "a.B/C"), "one layer retries", "│ own.yaml ")
	_, _, err := command(t, "chain", "--policy", file)
	if err == nil || !strings.Contains(err.Error(), "own.yaml: has no entry for the method /acme.shop.v1.Shop/Get") {
		t.Errorf("error %v", err)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"want one of: a SCENARIO (see --list), or --list":            {},
		"want one of: a SCENARIO (see --list), or --list ":           {"chain", "--list"},
		"--clients -1: must be at least 1":                           {"chain", "--clients", "-1"},
		`--method "a/b": is for the file of --policy`:                {"chain", "--method", "a/b"},
		"nothing: is not a file or a built-in scenario; those are b": {"nothing"},
	} {
		_, _, err := command(t, args...)
		if _, ok := errors.AsType[cli.UsageError](err); !ok || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%q: error %v; want a usage error: %s", args, err, want)
		}
	}
}

func TestFileErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	bad, lacking := filepath.Join(folder, "bad.yaml"), filepath.Join(folder, "lacking.yaml")
	for file, text := range map[string]string{bad: "title: 1\nfoo: 2\n", lacking: "title: x\npolicies: {a: nowhere.yaml}\n"} {
		testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for file, want := range map[string]string{bad: bad + ":2:1: foo: unknown key", lacking: "policies.a: nowhere.yaml: cannot be read"} {
		_, _, err := command(t, file)
		if err == nil || cli.ExitCode(err) != cli.ExitFailure || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
}
