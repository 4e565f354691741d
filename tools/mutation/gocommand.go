// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	goVariable     = "MUTATION_GO"     // the path of the real go command
	folderVariable = "MUTATION_FOLDER" // the target

	testTimeout = "30s" // of tests that take two
)

// goCommand is what gremlins runs as go. gremlins knows no filter of tests, takes a change that does not compile for
// one that tests have found, and passes over what Go's coverage does not count: the conditions of a switch, and constants.
func goCommand(args []string) int {
	code, err := func() (int, error) {
		if len(args) > 0 && args[0] == "mod" {
			return 0, nil // gremlins downloads all modules of the graph: go test gets those that it needs
		}
		if len(args) == 0 || args[0] != "test" {
			return 0, syscall.Exec(os.Getenv(goVariable), append([]string{"go"}, args...), os.Environ())
		}
		t, ok := targetOf(os.Getenv(folderVariable))
		if !ok {
			return 0, fmt.Errorf("%s is no target", os.Getenv(folderVariable))
		}
		if i := slices.Index(args, "-coverprofile"); i >= 0 {
			return t.cover(args[i+1])
		}
		return t.test()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		return 1
	}
	return code
}

// cover runs the tests on unchanged code and writes the profile of their coverage, which gremlins reads.
func (t target) cover(profile string) (int, error) {
	var union []byte
	for i, tests := range t.tests {
		out, code, err := goTest(".", append([]string{"-coverpkg", "./" + t.folder, "-coverprofile", profile}, tests...))
		if err != nil || code != 0 {
			fmt.Fprintf(os.Stderr, "%s", out)
			return code, err
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			_, text, _ = bytes.Cut(text, []byte("\n")) // the mode
		}
		union = append(union, text...)
	}
	if err := os.WriteFile(profile, union, 0o600); err != nil {
		return 0, err
	}
	return 0, addUncounted(profile)
}

// test runs the tests on changed code. gremlins calls it in the target's folder of a copy of the module.
func (t target) test() (int, error) {
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	root := strings.TrimSuffix(dir, filepath.FromSlash("/"+t.folder))
	for _, tests := range t.tests {
		out, code, err := goTest(root, tests)
		if bytes.Contains(out, []byte("[build failed]")) {
			return 2, nil // gremlins: the change is not viable
		}
		if err != nil || code != 0 {
			return code, err
		}
	}
	return 0, nil
}

func goTest(dir string, args []string) ([]byte, int, error) {
	cmd := exec.Command(os.Getenv(goVariable), append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout", testTimeout}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return out, failed.ExitCode(), nil
	}
	return out, 0, err
}
