// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// page is docs/evidence/interop.md and results.md: the tests' counts.
type page struct {
	mu       sync.Mutex
	versions map[string]string // of installed programs
	sections map[int]section   // by their place on the page
	deficits []string          // where stagger is worse
}

// section is one of docs/evidence/interop.md if its place is before details, else one of results.md.
type section struct {
	title, text string
	tables      []table
}

const details = 12

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

const (
	intro = "# Evidence: software of others\n\n" +
		"**The claim:** behind nginx, no call that isn't declared idempotent runs twice with stagger, as without retries, and the others succeed. Behind HAProxy, gRPC\n" +
		"itself repeats calls, with retries or without.\n\n" +
		"`make interop` runs real servers, proxies and clients, and fails when one of its claims no longer holds. The claims are the counts of calls that ran twice; shares\n" +
		"of calls differ by some tenths from run to run. The run that counts also writes the page (`make interop INTEROP='-args -write ../../docs/evidence/interop.md'`).\n" +
		"This run was on %s. [Versions and all tables](../../lab/interop/results.md) also show the answers of proxies, settings that make them repeat calls, and one\n" +
		"policy in Go, Python and Node.\n"
	resultsIntro = "# Software of others: all tables\n\n" +
		"[docs/evidence/interop.md](../../docs/evidence/interop.md) says what follows from a run on %s. `make interop` writes these tables as well.\n\n" +
		"## Versions\n\n"
)

// write writes the page into a file, and the details into another.
func (p *page) write(file, results string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	today := time.Now().UTC().Format(time.DateOnly)
	var short, long strings.Builder
	fmt.Fprintf(&short, intro, today)
	fmt.Fprintf(&long, resultsIntro, today)
	versions := table{header: []string{"program", "version"}}
	for _, name := range slices.Sorted(maps.Keys(p.versions)) {
		versions.rows = append(versions.rows, []string{name, p.versions[name]})
	}
	versions.write(&long)
	for _, place := range slices.Sorted(maps.Keys(p.sections)) {
		s, b := p.sections[place], &short
		if place >= details {
			b = &long
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n", s.title, strings.TrimSpace(s.text))
		for _, t := range s.tables {
			b.WriteByte('\n')
			t.write(b)
		}
	}
	slices.Sort(p.deficits)
	short.WriteString("\n## What stagger does worse\n\n")
	for _, line := range p.deficits {
		fmt.Fprintf(&short, "- %s\n", line)
	}
	return errors.Join(os.WriteFile(file, []byte(short.String()), 0o644), os.WriteFile(results, []byte(long.String()), 0o644))
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
