// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"fmt"
	"testing"

	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
)

// A table of docs/evidence/storms.md has the figures of a run: what retries elsewhere bring while one backend fails, and what the first
// retry at once costs while all fail.
func TestRetryElsewhereDocsAreCurrent(t *testing.T) {
	t.Parallel()
	says := map[string]string{
		"gRPC": "gRPC's retries", "stagger": "stagger", "elsewhere": "stagger, elsewhere", "at once": "stagger, elsewhere, `AT_ONCE`",
	}
	who := named(elsewhereClients(), "gRPC", "stagger", "elsewhere", "at once")
	shown := report.Table{
		Title:   "From one connection, with round_robin",
		Columns: []string{"retries", "one of four fails: success, %", "p99, ms", "p999", "all fail for 150 ms: success, %"},
	}
	testkit.Judge(t, func(trial testing.TB) {
		one, all := play(t, load(t, "one-fails"), who), play(t, load(t, "blip"), who)
		shown.Rows = nil
		for i, c := range who {
			r := one.results[i]
			if name := says[c.name]; name != "" {
				shown.Rows = append(shown.Rows, []string{
					name, fmt.Sprintf("%.1f", 100*r.Success), fmt.Sprint(r.P99.Milliseconds()), fmt.Sprint(r.P999.Milliseconds()),
					fmt.Sprintf("%.1f", 100*all.results[i].Success),
				})
			}
		}
		if *write {
			put(t, page, "elsewhere", shown)
			return
		}
		agrees(trial, page, "elsewhere", map[string][]terminal.Off{
			shown.Columns[1]: {{Abs: 1}}, shown.Columns[2]: {{Rel: 0.7}}, shown.Columns[3]: {{Rel: 0.75}}, shown.Columns[4]: {{Abs: 1}},
		}, shown)
	})
}
