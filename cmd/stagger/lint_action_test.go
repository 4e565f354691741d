// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/internal/tools/must"
)

// repository returns a clone with an uncommitted change, that of testdata/repository.
func repository(t *testing.T) (folder string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are bash's")
	}
	folder = t.TempDir()
	copyTree := func(from string) {
		must.Do(t, os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "repository", from))))
	}
	copyTree("before")
	for _, args := range []string{"init -q -b main", "add .", "-c user.name=a -c user.email=a@example.com commit -q -m before"} {
		if out, err := exec.Command("git", append([]string{"-C", folder}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	if err := os.Remove(filepath.Join(folder, "deploy", "retry.yaml")); err != nil { // CopyFS does not overwrite
		t.Fatal(err)
	}
	copyTree("after")
	return folder
}

func parsed(t *testing.T, file string, to any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The loosenings in the change of testdata/repository, without the form of the output.
var laxer = []string{
	"budgets[0].ratio.percent: 50: is laxer than before (10) for /acme.orders.v1.OrderService/GetOrder",
	"methodConfig[0].retryPolicy: up to 5 attempts: is laxer than before (1 attempt) for /acme.orders.v1.OrderService/CreateOrder",
	"methodConfig[0].retryPolicy.maxAttempts: 5: is laxer than before (3) for /acme.orders.v1.OrderService/GetOrder",
	"methodConfig[0].retryPolicy.retryableStatusCodes: INTERNAL: is laxer than before (not listed) for /acme.orders.v1.OrderService/GetOrder",
}

// TestAction runs the step of action.yml as a workflow does.
func TestAction(t *testing.T) {
	t.Parallel()
	folder := repository(t)
	var action struct {
		Runs struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	parsed(t, "../../action.yml", &action)
	if len(action.Runs.Steps) != 1 {
		t.Fatalf("%d steps; want one", len(action.Runs.Steps))
	}
	step := action.Runs.Steps[0]
	root := must.Get(filepath.Abs("../.."))(t)
	lint := func(inputs map[string]string) (string, error) {
		c := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		c.Dir = folder
		c.Env = append(os.Environ(), "GITHUB_ACTION_PATH="+root)
		for name, from := range step.Env {
			input := strings.TrimSuffix(strings.TrimPrefix(from, "${{ inputs."), " }}")
			c.Env = append(c.Env, name+"="+inputs[input])
		}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	got, err := lint(map[string]string{"files": "deploy/*.yaml", "against": "main"})
	if err == nil {
		t.Error("the step passes")
	}
	for _, want := range laxer {
		if !strings.Contains(got, "::"+want+"\n") {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
	if !strings.Contains(got, "::warning file=deploy/retry.yaml,line=9,col=20::methodConfig[0].retryPolicy.maxAttempts") {
		t.Errorf("does not mark the line:\n%s", got)
	}
	if got, err := lint(map[string]string{"files": "deploy/retry.yaml", "arguments": "--strict"}); err != nil {
		t.Errorf("without another commit: %v\n%s", err, got)
	}
	if got, err := lint(map[string]string{"files": "deploy/retry.yaml", "against": "no-such-branch"}); err == nil {
		t.Errorf("a branch that is not there is compared with\n%s", got)
	}
}

// TestPreCommitHook runs the hook as pre-commit does: from the root of a repository, with the files that match.
func TestPreCommitHook(t *testing.T) {
	t.Parallel()
	folder := repository(t)
	var hooks []struct{ ID, Entry, Language, Files string }
	parsed(t, "../../.pre-commit-hooks.yaml", &hooks)
	if len(hooks) != 1 || hooks[0].Language != "script" {
		t.Fatalf("%+v; want one hook that is a script", hooks)
	}
	script := must.Get(filepath.Abs(filepath.Join("../..", hooks[0].Entry)))(t)
	hook := func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), script, append(args, "deploy/retry.yaml")...)
		c.Dir = folder
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if got, err := hook(); err != nil || got != "deploy/retry.yaml: can be used; 2 policies\n" {
		t.Errorf("%v\n%s", err, got)
	}
	got, err := hook("--against-ref=HEAD")
	if err == nil || strings.Count(got, "warning: deploy/retry.yaml:") != len(laxer) {
		t.Errorf("%v\n%s", err, got)
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "deploy", "retry.yaml"), []byte("methodConfig: [{nam: []}]"), 0o600))
	if got, err := hook(); err == nil || !strings.Contains(got, "error: deploy/retry.yaml:1:17: ") {
		t.Errorf("%v\n%s", err, got)
	}
}
