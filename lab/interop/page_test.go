// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// page is docs/evidence/interop.md: the tests' counts.
type page struct {
	mu       sync.Mutex
	versions map[string]string // of installed programs
	sections map[int]section   // by their place on the page
	deficits []string          // where stagger is worse
}

type section struct {
	title, text string
	tables      []table
}

type table struct {
	header []string
	rows   [][]string
}

var evidence = page{versions: map[string]string{"Go": runtime.Version()}, sections: map[int]section{}}

// uses records the version of a program.
func (p *page) uses(name, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions[name] = version
}

// add adds a section to the page.
func (p *page) add(place int, s section) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sections[place] = s
}

// worse adds to the page where stagger is worse than others.
func (p *page) worse(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deficits = append(p.deficits, fmt.Sprintf(format, args...))
}

const intro = "# Evidence: software of others\n\n" +
	"This page shows how stagger works with servers, proxies and clients that were not written for it. The test run that counts also writes the page\n" +
	"(`make interop INTEROP='-args -write ../../docs/evidence/interop.md'`). `make interop` alone fails when one of its claims\n" +
	"no longer holds. The claims are the counts of calls that ran twice; shares of calls differ by some tenths from run to run.\n\n" +
	"## Versions\n\n"

func (p *page) write(file string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "The run was on %s.\n\n", time.Now().UTC().Format(time.DateOnly))
	versions := table{header: []string{"program", "version"}}
	for _, name := range slices.Sorted(maps.Keys(p.versions)) {
		versions.rows = append(versions.rows, []string{name, p.versions[name]})
	}
	versions.write(&b)
	for _, place := range slices.Sorted(maps.Keys(p.sections)) {
		s := p.sections[place]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.title, strings.TrimSpace(s.text))
		for _, t := range s.tables {
			b.WriteByte('\n')
			t.write(&b)
		}
	}
	slices.Sort(p.deficits)
	b.WriteString("\n## What stagger does worse\n\n")
	for _, line := range p.deficits {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func (t table) write(b *strings.Builder) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(t.header, " | "), strings.Repeat(" --- |", len(t.header)))
	for _, row := range t.rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// percent formats a share.
func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", 100*float64(part)/float64(whole))
}
