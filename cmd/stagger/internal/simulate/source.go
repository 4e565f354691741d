// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/examples/simulate"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// open reads a scenario from a file, or one that is built in if there is no such file.
func open(name string) (*sim.Scenario, error) {
	s, err := sim.Load(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if _, missing := os.Stat(name); missing == nil {
		return nil, err // it is a policy file that is not there
	}
	data, missing := simulate.Files.ReadFile(name + ".yaml")
	if missing != nil {
		return nil, cli.UsageErrorf("%s: is no file, and no scenario that is built in; those are %s", name, strings.Join(builtIn(), ", "))
	}
	return sim.Parse(name+".yaml", data, simulate.Files.ReadFile)
}

// builtIn are the names of the scenarios that are built in.
func builtIn() []string {
	files, _ := fs.Glob(simulate.Files, "*.yaml") // the pattern is right
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

func list(w io.Writer) error {
	t := report.Table{Columns: []string{"scenario", "what it shows"}}
	for _, name := range builtIn() {
		s, err := open(name)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, []string{name, s.Title})
	}
	_, err := fmt.Fprintln(w, render(t))
	return err
}
