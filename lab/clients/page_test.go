// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

const page = "results.md"

const (
	begin = "<!-- counted by make clients -->\n" +
		"| library | version | call | own retries on: bare → stagger | off: bare → stagger | error | write: bare → stagger, ASSUME |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n"
	end = "<!-- /counted -->\n"
)

// table has the tests' counts, by library.
type table struct {
	mu   sync.Mutex
	rows map[string]string
}

var counted = table{rows: map[string]string{}}

func (t *table) add(library, row string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[library] = row
}

// compare compares the rows with the page's, or writes them into a page. It leaves the rows of tests that did not run
// unchanged.
func (t *table) compare(file, write string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, opened := bytes.Cut(old, []byte(begin))
	shown, after, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		return fmt.Errorf("%s: no lines %q and %q", file, begin, end)
	}
	lines := strings.FieldsFunc(string(shown), func(r rune) bool { return r == '\n' })
	for _, name := range order {
		row, ran := t.rows[name]
		if !ran {
			continue
		}
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| "+name+" | ") })
		switch {
		case at >= 0 && lines[at] == row:
		case write == "":
			return fmt.Errorf("%s differs; -write %s brings it up to date; counted now:\n%s", file, file, row)
		case at >= 0:
			lines[at] = row
		default:
			lines = append(lines, row)
		}
	}
	if write == "" {
		return nil
	}
	text := slices.Concat(before, []byte(begin), []byte(strings.Join(lines, "\n")+"\n"), []byte(end), after)
	return os.WriteFile(write, text, 0o644)
}

// version returns the version of a module in go.mod.
func version(t *testing.T, module string) string {
	t.Helper()
	file, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == module {
			return strings.TrimPrefix(f[1], "v")
		}
	}
	t.Fatalf("go.mod does not require %s", module)
	return ""
}
