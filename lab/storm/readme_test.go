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

// The README's table has the figures of a run. Runs differ by the peers' jitter, so four points of success, and a twentieth of
// the requests, may differ: in a dozen runs, it was half of that.
func TestReadmeDocsAreCurrent(t *testing.T) {
	t.Parallel()
	var names []string
	shown := report.Table{Title: "Success in %, and requests at the servers for each call", Columns: []string{"trouble"}}
	off := map[string][]terminal.Off{}
	for _, c := range readmeClients {
		names = append(names, c.client)
		shown.Columns, off[c.says] = append(shown.Columns, c.says), []terminal.Off{{Abs: 4}, {Abs: 0.05, Rel: 0.05}}
	}
	shown.Rows = make([][]string, len(readmeStorms))
	t.Run("storms", func(t *testing.T) {
		for i, s := range readmeStorms {
			t.Run(s.file, func(t *testing.T) {
				t.Parallel()
				testkit.Judge(t, func(one testing.TB) {
					o := play(t, load(t, s.file), named(clients(), names...))
					shown.Rows[i] = []string{s.says}
					success, perCall := of(o, func(r result) string { return fmt.Sprintf("%.1f", 100*r.Success) }), of(o, func(r result) string { return fmt.Sprintf("%.2f", r.PerCall) })
					for _, name := range names {
						shown.Rows[i] = append(shown.Rows[i], success(name)+", "+perCall(name))
					}
					if *write {
						return
					}
					row := shown
					row.Rows = shown.Rows[i : i+1]
					for _, line := range testkit.Must(terminal.Differences(readme, "storms", []report.Table{row}, off))(t) {
						one.Error(line)
					}
				})
			})
		}
	})
	if *write {
		testkit.NoError(t, terminal.WriteInto(readme, "storms", []report.Table{shown}))
	}
}
