// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package hang

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "google.golang.org/grpc/xds" // gRPC's outlier detection is in it

	"github.com/stagger-go/stagger/internal/testkit"
)

const retries = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.1s}
`

// ejecting returns a policy file with docs/one-backend.md's outlier detection, with these percentages.
func ejecting(t *testing.T, most, enforcement int) string {
	t.Helper()
	_, rest, found := strings.Cut(string(testkit.Must(os.ReadFile("../../docs/one-backend.md"))(t)), "```yaml ejection\n")
	block, _, ended := strings.Cut(rest, "```\n")
	block, first := replaced(block, "maxEjectionPercent: 34", fmt.Sprint("maxEjectionPercent: ", most))
	block, second := replaced(block, "enforcementPercentage: 100", fmt.Sprint("enforcementPercentage: ", enforcement))
	if !found || !ended || !first || !second {
		t.Fatalf("docs/one-backend.md has no outlier detection with these settings:\n%s", block)
	}
	return block + retries
}

// replaced replaces a part of a text, and reports whether it is there once.
func replaced(text, from, to string) (string, bool) {
	return strings.Replace(text, from, to, 1), strings.Count(text, from) == 1
}

// While one of three backends hangs, no attempt follows a slow one of an undeclared method: a third of its calls fail. With outlier
// detection, gRPC ejects the backend.
func TestEject(t *testing.T) {
	rows := tableRows(t, "hang")
	for _, row := range []struct {
		name        string
		enforcement int     // percent
		least, most float64 // success
	}{
		{"without", 0, 0.40, 0.80},
		{"with", 100, 0.90, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 3, ejecting(t, 34, row.enforcement))
			s.call(t, usual, time.Second)
			s.stop(t, 1)
			calls, failed := s.call(t, load{get: 50, create: 50}, 20*time.Second)
			success := 1 - float64(failed[create])/float64(calls[create])
			t.Logf("%.1f %% of the undeclared calls succeed, and %.1f %% of the others", 100*success, 100-100*float64(failed[get])/float64(calls[get]))
			rows.add(fmt.Sprintf("| one of 3 hangs | %s | half not idempotent | %.0f %% of these succeed |", row.name, 100*success))
			if success < row.least || success > row.most {
				t.Errorf("%.3f of the undeclared calls succeed; want %v to %v", success, row.least, row.most)
			}
		})
	}
}

// gRPC counts any end but OK as a failure of the backend: NOT_FOUND, and calls whose users have left. So it ejects healthy servers, as many
// as maxEjectionPercent allows.
func TestEject_Healthy(t *testing.T) {
	rows := tableRows(t, "healthy")
	for _, row := range []struct {
		name    string
		load    load
		most    int // maxEjectionPercent
		ejected int
	}{
		{"60 % NOT_FOUND", load{find: 60, get: 40}, 50, 2},
		{"60 % NOT_FOUND", load{find: 60, get: 40}, 25, 1},
		{"60 % cancelled", load{watch: 60, get: 40}, 50, 2},
		{"20 % NOT_FOUND", load{find: 20, get: 80}, 50, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 4, ejecting(t, row.most, 100))
			s.call(t, row.load, 6*time.Second)
			before := s.attempts(t)
			_, failed := s.call(t, row.load, 3*time.Second)
			idle := 0
			for address, n := range s.attempts(t) {
				if n == before[address] {
					idle++
				}
			}
			t.Logf("%d of 4 backends are ejected", idle)
			rows.add(fmt.Sprintf("| 4 healthy | `maxEjectionPercent: %d` | %s | %d ejected |", row.most, row.name, idle))
			if idle != row.ejected || failed[get] > 0 {
				t.Errorf("%d of 4 healthy backends are ejected, and %d calls fail; want %d, and none", idle, failed[get], row.ejected)
			}
		})
	}
}

// attempts returns how many attempts each backend has had, as the debug page counts them.
func (s *trial) attempts(t *testing.T) map[string]int {
	t.Helper()
	var is state
	s.state(t, &is)
	list := map[string]int{}
	for _, b := range is[0].Backends {
		list[b.Address] = b.Attempts
	}
	return list
}

// table has rows of results.md, which tests with -write write.
type table struct {
	mu   sync.Mutex // guards rows
	rows []string
}

func (r *table) add(row string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row)
}

// written has the rows of each test.
var written = map[string][]string{}

// tableRows returns a table for the rows of a test, which are written when its subtests have ended.
func tableRows(t *testing.T, test string) *table {
	t.Helper()
	r := new(table)
	t.Cleanup(func() {
		if !*write || t.Failed() {
			return
		}
		slices.Sort(r.rows)
		written[test] = r.rows
		const file, begin, end = "results.md", "<!-- lab/hang -->\n", "<!-- /lab/hang -->\n"
		head, rest, found := strings.Cut(string(testkit.Must(os.ReadFile(file))(t)), begin)
		_, tail, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no place for the table", file)
		}
		lines := append([]string{"| backends | outlier detection | calls | result |", "| --- | --- | --- | --- |"}, append(written["hang"], written["healthy"]...)...)
		testkit.NoError(t, os.WriteFile(file, []byte(head+begin+strings.Join(lines, "\n")+"\n"+end+tail), 0o600))
	})
	return r
}
