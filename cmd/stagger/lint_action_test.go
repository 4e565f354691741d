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

	"github.com/stagger-go/stagger/internal/testkit"
)

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

const (
	goodPolicy = "methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}], timeout: 1s}]\n"
	badPolicy  = "methodConfig: [{nam: []}]\n"
)

// policies returns a folder with deploy/retry.yaml.
func policies(t *testing.T, text string) (folder string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are bash's")
	}
	folder = t.TempDir()
	testkit.NoError(t, os.Mkdir(filepath.Join(folder, "deploy"), 0o700))
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "deploy", "retry.yaml"), []byte(text), 0o600))
	return folder
}

// TestAction runs the step of action.yml as a workflow does.
func TestAction(t *testing.T) {
	t.Parallel()
	folder := policies(t, badPolicy)
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
	root := testkit.Must(filepath.Abs("../.."))(t)
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
	got, err := lint(map[string]string{"files": "deploy/*.yaml"})
	if err == nil || !strings.Contains(got, "::error file=deploy/retry.yaml,line=1,col=17::methodConfig[0].nam") {
		t.Errorf("a bad file: %v\n%s", err, got)
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "deploy", "retry.yaml"), []byte(goodPolicy), 0o600))
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "-x.yaml"), []byte(badPolicy), 0o600))
	if got, err := lint(map[string]string{"files": "deploy/retry.yaml", "arguments": "--strict"}); err != nil {
		t.Errorf("a good file: %v\n%s", err, got)
	}
	if got, err := lint(map[string]string{"files": "*.yaml"}); err == nil || !strings.Contains(got, "file=-x.yaml,line=1") {
		t.Errorf("a file whose name begins with a dash: %v\n%s", err, got)
	}
}

// TestPreCommitHook runs the hook as pre-commit does: from the root of a repository, with the files that match.
func TestPreCommitHook(t *testing.T) {
	t.Parallel()
	folder := policies(t, goodPolicy)
	var hooks []struct{ ID, Entry, Language, Files string }
	parsed(t, "../../.pre-commit-hooks.yaml", &hooks)
	if len(hooks) != 1 || hooks[0].Language != "script" {
		t.Fatalf("%+v; want one hook that is a script", hooks)
	}
	script := testkit.Must(filepath.Abs(filepath.Join("../..", hooks[0].Entry)))(t)
	hook := func() (string, error) {
		c := exec.CommandContext(t.Context(), script, "deploy/retry.yaml")
		c.Dir = folder
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if got, err := hook(); err != nil || got != "deploy/retry.yaml: can be used; 1 policy\n" {
		t.Errorf("%v\n%s", err, got)
	}
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "deploy", "retry.yaml"), []byte(badPolicy), 0o600))
	if got, err := hook(); err == nil || !strings.Contains(got, "error: deploy/retry.yaml:1:17: ") {
		t.Errorf("%v\n%s", err, got)
	}
}
