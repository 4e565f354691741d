// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutation changes the code that decides about attempts in one place at a time, has its tests run, and fails if
// they do not notice a change that survivors.txt does not explain. gremlins finds the changes and makes them.
//
//	mutation [-workers n] [folder ...]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

// A target is a package, and what it takes to test a change of it.
type target struct {
	folder string
	files  []string   // nil: all
	tests  [][]string // arguments of go test, one run after another until one fails: the quick ones first
}

var targets = []target{
	{folder: "backoff", tests: [][]string{{"./backoff"}}},
	{folder: "budget", tests: [][]string{{"./budget"}}},
	{folder: "internal/bounds", tests: [][]string{{"./budget"}}},
	{folder: "admission", tests: [][]string{{"-skip", "^TestAdmission", "./admission"}, {"./admission"}}},
	{folder: "internal/evidence", tests: [][]string{{"./internal/evidence"}}},
	{folder: "internal/attempts", tests: [][]string{
		{"-skip", "^TestModel", "./internal/attempts"},
		{"-run", "^TestModel", "./internal/attempts"},
	}},
	{
		folder: "internal/decision",
		files:  []string{"classify.go", "decision.go", "pushback.go"},
		tests:  [][]string{{"./internal/decision"}, {"-skip", "^TestModel", "./internal/attempts"}},
	},
	{folder: "internal/policyfile/lookup", tests: [][]string{{"./internal/policyfile/lookup"}}},
	{folder: "policy", tests: [][]string{{"-skip", slowOfPolicy, "./policy"}, {"./internal/policyfile/spec", "./internal/decision"}, {"-run", slowOfPolicy, "./policy"}}},
	{folder: "internal/policyfile/spec", tests: [][]string{{"./internal/policyfile/spec"}, {"-skip", slowOfPolicy, "./policy"}, {"-run", slowOfPolicy, "./policy"}}},
}

// slowOfPolicy are the tests of package policy that take most of its time.
const slowOfPolicy = "ParseMemory|ParseManyErrors|GRPCRefusesNoMore|HeadersArrive"

func main() {
	if filepath.Base(os.Args[0]) == "go" {
		os.Exit(goCommand(os.Args[1:]))
	}
	workers := flag.Int("workers", runtime.NumCPU(), "changes that are tested at once")
	flag.Parse()
	if err := run(*workers, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(workers int, folders []string) error {
	for _, folder := range folders {
		if _, ok := targetOf(folder); !ok {
			return fmt.Errorf("%s is no target", folder)
		}
	}
	explained, err := readSurvivors("tools/mutation/survivors.txt")
	if err != nil {
		return err
	}
	var failed []error
	for _, t := range targets {
		if len(folders) > 0 && !slices.Contains(folders, t.folder) {
			continue
		}
		mutants, err := t.unleash(workers)
		if err != nil {
			return fmt.Errorf("%s: %w", t.folder, err)
		}
		failed = append(failed, t.report(mutants, explained))
	}
	return errors.Join(failed...)
}

func targetOf(folder string) (target, bool) {
	i := slices.IndexFunc(targets, func(t target) bool { return t.folder == filepath.Clean(folder) })
	if i < 0 {
		return target{}, false
	}
	return targets[i], true
}

// A mutant is one change of the code, as gremlins reports it.
type mutant struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	file   string
}

// unleash runs gremlins on the package. gremlins calls the go command by its name: what it finds is this program.
func (t target) unleash(workers int) (found []mutant, err error) {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	goPath, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(program, filepath.Join(dir, "go")); err != nil {
		return nil, err
	}
	output := filepath.Join(dir, "mutants.json")
	args := []string{
		"unleash", "--output", output, "--output-statuses", "l", "--workers", strconv.Itoa(workers),
		"--timeout-coefficient", "100", // so that testTimeout comes first
		"--invert-assignments", "--invert-bitwise", "--invert-bwassign", "--invert-logical", "--invert-loopctrl",
		"--remove-self-assignments", "--invert-negatives=false", // the same as one of --arithmetic-base
		"--exclude-files", "/", // folders below
	}
	args, err = t.exclude(args)
	if err != nil {
		return nil, err
	}
	gremlins := exec.Command(filepath.Join(filepath.Dir(program), "gremlins"), append(args, "./"+t.folder)...)
	gremlins.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir, goVariable+"="+goPath, folderVariable+"="+t.folder)
	gremlins.Stdout, gremlins.Stderr = os.Stderr, os.Stderr // what lives, as it is found
	if err := gremlins.Run(); err != nil {
		return nil, err
	}
	return readMutants(output)
}

// exclude adds the package's files that are not the target's.
func (t target) exclude(args []string) ([]string, error) {
	if t.files == nil {
		return args, nil
	}
	paths, err := filepath.Glob(filepath.Join(t.folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if name := filepath.Base(path); !slices.Contains(t.files, name) {
			args = append(args, "--exclude-files", "^"+regexp.QuoteMeta(name)+"$")
		}
	}
	return args, nil
}

func readMutants(path string) ([]mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var result struct {
		Files []struct {
			Name    string   `json:"file_name"`
			Mutants []mutant `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, f := range result.Files {
		for _, m := range f.Mutants {
			m.file = f.Name
			mutants = append(mutants, m)
		}
	}
	if len(mutants) == 0 {
		return nil, errors.New("gremlins has found nothing to change")
	}
	return mutants, nil
}
