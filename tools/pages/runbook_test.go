// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/explain"
)

// runbook is the entries of docs/runbook.md, by the heading of their part.
func runbook(t *testing.T) map[string][]runbookEntry {
	t.Helper()
	parts := map[string][]runbookEntry{}
	for _, part := range strings.Split(read(t, "docs/runbook.md"), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		for _, entry := range strings.Split(text, "\n### ")[1:] {
			name, says, _ := strings.Cut(entry, "\n")
			parts[title] = append(parts[title], runbookEntry{strings.Trim(name, "`"), says})
		}
		for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| .+ \|$`).FindAllStringSubmatch(text, -1) {
			if title == "Warnings" && row[1] != "warning" && row[1] != "---" {
				parts[title] = append(parts[title], runbookEntry{name: strings.Trim(row[1], "`")})
			}
		}
	}
	return parts
}

type runbookEntry struct{ name, says string }

// Exactly the alerts and warnings have entries, and each entry is complete.
func TestRunbook(t *testing.T) {
	t.Parallel()
	var alerts []string
	for _, m := range regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(read(t, "examples/shop/alerts.yaml"), -1) {
		alerts = append(alerts, m[1])
	}
	parts := runbook(t)
	var got []string
	for _, e := range parts["Alerts"] {
		got = append(got, e.name)
	}
	if !slices.Equal(got, alerts) || len(alerts) == 0 {
		t.Errorf("the entries of alerts are %q; want %q", got, alerts)
	}
	messages := warnings(t)
	if len(messages) < 20 {
		t.Fatalf("%d warnings are found in the code; there are more", len(messages))
	}
	for _, m := range messages {
		has := slices.ContainsFunc(parts["Warnings"], func(e runbookEntry) bool { return strings.Contains(m, e.name) })
		if !has {
			t.Errorf("no entry quotes the warning %q", m)
		}
	}
	for _, e := range parts["Warnings"] {
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, e.name) }) {
			t.Errorf("the entry %q quotes no warning that there is", e.name)
		}
	}
	for _, e := range parts["Alerts"] {
		if !regexp.MustCompile(`^\n[^-\n].*\n\n- `).MatchString(e.says) {
			t.Errorf("%s: does not begin with what it means", e.name)
		}
		for _, label := range []string{"\n- **Look at:** ", "\n- **Change:** ", "\n- **Do not:** "} {
			if strings.Count("\n"+e.says, label) != 1 {
				t.Errorf("%s: %d lines with %q; want one", e.name, strings.Count("\n"+e.says, label), label)
			}
		}
	}
}

// warnings returns the texts of all warnings of a Retrier, from the code of packages interceptor,
// policy, spec and methods.
func warnings(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"interceptor/*.go", "policy/*.go", "internal/policyfile/spec/*.go", "internal/methods/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if text := warningText(n); text != "" {
					list = append(list, text)
				}
				return true
			})
		}
	}
	return list
}

// warningText returns the text of a node's warning, or "".
func warningText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if name, ok := n.Type.(*ast.Ident); ok && name.Name == "surprise" {
			return literals(n.Elts[1])
		}
	case *ast.ValueSpec: // a text that several warnings share
		if name := n.Names[0].Name; name == "inSequence" || name == "notForUploads" {
			return literals(n)
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Message" {
			return literals(n.Value)
		}
	case *ast.AssignStmt:
		if field, ok := n.Lhs[0].(*ast.SelectorExpr); ok && field.Sel.Name == "Message" {
			return literals(n.Rhs[0])
		}
	case *ast.CallExpr:
		switch name := n.Fun.(type) {
		case *ast.SelectorExpr:
			if name.Sel.Name == "Warnf" {
				return literals(n.Args[2])
			}
		case *ast.Ident:
			if name.Name == "warn" {
				return literals(n.Args[1])
			}
		}
	}
	return ""
}

// literals returns the texts in a node, concatenated.
func literals(n ast.Node) string {
	var text strings.Builder
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil {
				text.WriteString(s)
			}
		}
		return true
	})
	return text.String()
}

var write = flag.Bool("write", false, "write what is generated into the pages")

// TestReasonPages compares the reasons of the pages with the table of internal/explain; with -write it writes them.
func TestReasonPages(t *testing.T) {
	t.Parallel()
	var table, entries, again strings.Builder
	reasons, answers := map[string]string{}, []string(nil) // to "call again?"
	table.WriteString("\n")
	for _, m := range explain.Meanings() {
		if m.Question != "" {
			fmt.Fprintf(&table, "1. %s [`%s`](#%[2]s)\n", m.Question, m.Reason)
		}
		fmt.Fprintf(&entries, "\n### `%s`\n\n%s\n", m.Reason, m.Means)
		separator := "\n"
		for _, line := range [][2]string{
			{"Look at:", m.LookAt}, {"Change:", m.Change}, {"Do not:", m.DoNot},
		} {
			if line[1] != "" {
				fmt.Fprintf(&entries, "%s- **%s** %s\n", separator, line[0], line[1])
				separator = ""
			}
		}
	}
	for _, m := range explain.Meanings() {
		answer, _, _ := strings.Cut(strings.TrimSuffix(m.CallAgain, "."), ":")
		if answer == "" {
			continue
		}
		if reasons[answer] == "" {
			answers = append(answers, answer)
		}
		reasons[answer] += fmt.Sprintf(" [`%s`](#%[1]s)", m.Reason)
	}
	for _, answer := range answers {
		fmt.Fprintf(&again, "- **%s:**%s\n", answer, strings.ReplaceAll(reasons[answer], ") [", "), ["))
	}
	wantSection(t, "docs/runbook.md", "call again", "\n"+again.String()+"\n")
	wantSection(t, "docs/runbook.md", "checks", table.String()+"\n")
	wantSection(t, "docs/runbook.md", "reasons", entries.String()+"\n")
}

// wantSection compares the text between the marks of a page.
func wantSection(t *testing.T, path, name, want string) {
	t.Helper()
	page := read(t, path)
	before, rest, begins := strings.Cut(page, "<!-- "+name+": make generate -->\n")
	got, after, ends := strings.Cut(rest, "<!-- end -->\n")
	switch {
	case !begins || !ends:
		t.Errorf("%s has no marks for its %s", path, name)
	case got == want:
	case *write:
		page = before + "<!-- " + name + ": make generate -->\n" + want + "<!-- end -->\n" + after
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("the %s of %s are not those of the code: run make generate", name, path)
	}
}
