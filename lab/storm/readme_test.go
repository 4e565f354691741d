// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

const readme = "../../README.md"

// The README's table shows these storms and clients.
var (
	readmeStorms = []struct{ file, says string }{
		{"blip", "all servers fail for 150 ms"},
		{"one-fails", "one of four fails every request at once"},
		{"one-hangs", "one of four never responds"},
		{"rolling-deploy", "each of four is down for 2 s in turn, with little room"},
		{"quiet-client", "one of four fails; a client of a call every 2 s"},
		{"outage", "all servers fail for 10 s"},
		{"chain-outage", "A calls B, B calls C, and C fails for 3 s; requests at C"},
		{"pulse", "2.5 s of calls for 1.5 times the capacity"},
	}
	readmeClients = []struct{ client, says string }{
		{noRetriesName, "no retries"},
		{"gRPC", "gRPC"},
		{"gRPC, throttling 100/1", "gRPC, throttled"},
		{"grpc-middleware", "go-grpc-middleware"},
		{"failsafe", "failsafe-go"},
		{"stagger", "stagger"},
	}
)

// The README's table has the figures of a run. Runs differ by the peers' jitter, so one and a half points of success and a twentieth of a request may differ.
func TestReadmeDocsAreCurrent(t *testing.T) {
	t.Parallel()
	var names []string
	shown := report.Table{Title: "Success in %, and requests at the servers for each call", Columns: []string{"trouble"}}
	for _, c := range readmeClients {
		names = append(names, c.client)
		shown.Columns = append(shown.Columns, c.says)
	}
	shown.Rows = make([][]string, len(readmeStorms))
	t.Run("storms", func(t *testing.T) {
		for i, s := range readmeStorms {
			t.Run(s.file, func(t *testing.T) {
				t.Parallel()
				o := play(t, load(t, s.file), named(clients(), names...))
				shown.Rows[i] = []string{s.says}
				success, perCall := of(o, func(r result) string { return fmt.Sprintf("%.1f", 100*r.Success) }), of(o, func(r result) string { return fmt.Sprintf("%.2f", r.PerCall) })
				for _, name := range names {
					shown.Rows[i] = append(shown.Rows[i], success(name)+", "+perCall(name))
				}
			})
		}
	})
	if *write {
		must.Do(t, terminal.WriteInto(readme, "storms", []report.Table{shown}))
		return
	}
	page := string(must.Get(os.ReadFile(readme))(t))
	for _, row := range shown.Rows {
		if want := rowOf(page, row[0]); !near(want, row) {
			t.Errorf("README.md has\n%s\nand a run has\n%s", strings.Join(want, " | "), strings.Join(row, " | "))
		}
	}
}

// rowOf returns the cells of the page's row that begins with a text.
func rowOf(page, first string) []string {
	for line := range strings.Lines(page) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); cells[0] == first {
			return cells
		}
	}
	return nil
}

// near reports whether the figures of two rows are those of two runs.
func near(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 1; i < len(a); i++ {
		var one, other [2]float64
		_, err := fmt.Sscanf(a[i], "%f, %f", &one[0], &one[1])
		_, err2 := fmt.Sscanf(b[i], "%f, %f", &other[0], &other[1])
		if cmp.Or(err, err2) != nil || math.Abs(one[0]-other[0]) > 1.5 || math.Abs(one[1]-other[1]) > 0.05 {
			return false
		}
	}
	return true
}

func TestReadmeFigures(t *testing.T) {
	t.Parallel()
	page := "| trouble | a |\n| --- | ---: |\n| one fails | 99.1, 1.33 |\n"
	for text, want := range map[string]bool{
		"99.1, 1.33": true, "99.5, 1.30": true, "97.5, 1.33": false, "99.1, 1.40": false, "99.1": false,
	} {
		if got := near(rowOf(page, "one fails"), []string{"one fails", text}); got != want {
			t.Errorf("%q is near: %v", text, got)
		}
	}
	if near(rowOf(page, "none"), []string{"none", "1, 1"}) {
		t.Error("a row that the page does not have is near")
	}
}
