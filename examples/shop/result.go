// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/explain"
)

// result has the outcomes of a phase's calls.
type result struct {
	title string
	seen  []answer
	grown readings // growth of the services' counters
}

// links are the connections of the chain.
var links = [][2]string{{"gateway", "orders"}, {"orders", "inventory"}, {"orders", "payments"}}

// The names of the metrics in the result.
const (
	callsMetric     = "grpc_client_call_duration_seconds"
	attemptsMetric  = "grpc_client_attempt_started_total"
	decisionsMetric = "stagger_client_decisions_total"
)

// why returns the reason in a few words, which the command and the debug page explain in more.
func why(reason string) string {
	meaning, err := explain.MeaningOf(reason)
	return cmp.Or(meaning.Short, fmt.Sprint(err))
}

// String returns the result as text.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", r.title)
	for _, method := range []string{"Browse", "Buy"} {
		fmt.Fprintf(&b, "  users: %s\n", r.users(method))
	}
	for _, l := range links {
		calls, attempts := r.sum(callsMetric, l), r.sum(attemptsMetric, l)
		if calls == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %-21s %4.0f calls, %.2f attempts each\n", l[0]+" → "+l[1]+":", calls, attempts/calls)
		b.WriteString(r.refusals(l))
	}
	return b.String()
}

// users returns what the users of a method experienced.
func (r *result) users(method string) string {
	var took []time.Duration
	failed := map[codes.Code]int{}
	all := 0
	for _, a := range r.seen {
		if a.method != method {
			continue
		}
		all++
		took = append(took, a.took)
		if a.code != codes.OK {
			failed[a.code]++
		}
	}
	if all == 0 {
		return method + " was not called"
	}
	slices.Sort(took)
	var text strings.Builder
	fmt.Fprintf(&text, "%s succeeded %d of %d times", method, all-r.failed(method), all)
	for _, code := range slices.SortedFunc(maps.Keys(failed), func(a, b codes.Code) int { return cmp.Compare(failed[b], failed[a]) }) {
		fmt.Fprintf(&text, ", %d %v", failed[code], code)
	}
	at := func(part int) time.Duration { return took[(len(took)-1)*part/100].Round(time.Millisecond) }
	fmt.Fprintf(&text, "; half within %v, 99 %% within %v", at(50), at(99))
	return text.String()
}

// failed returns how many calls of a method failed.
func (r *result) failed(method string) (n int) {
	for _, a := range r.seen {
		if a.method == method && a.code != codes.OK {
			n++
		}
	}
	return n
}

// sum returns the growth of a metric on a connection.
func (r *result) sum(metric string, link [2]string) (sum float64) {
	for of, n := range r.grown {
		if of.metric == metric && of.service == link[0] && of.target == link[1] {
			sum += n
		}
	}
	return sum
}

// reasons returns the decisions on a connection after failed or slow attempts.
func (r *result) reasons(link [2]string) map[string]float64 {
	counts := map[string]float64{}
	for of, n := range r.grown {
		if of.metric == decisionsMetric && of.service == link[0] && of.target == link[1] && n > 0 {
			counts[of.reason] += n
		}
	}
	return counts
}

// refusals returns the attempts that stagger did not send, and why.
func (r *result) refusals(link [2]string) string {
	counts := r.reasons(link)
	delete(counts, "retry")
	delete(counts, "hedge")
	var b strings.Builder
	for _, reason := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "    no further attempt %4.0f times: %s (%s)\n", counts[reason], why(reason), reason)
	}
	return b.String()
}

// summary returns a line about the ledger.
func summary(keys map[string]payments) string {
	requests, made, doubled := 0, 0, 0
	for _, p := range keys {
		requests += p.requests
		made += p.made
		if p.made > 1 {
			doubled++
		}
	}
	return fmt.Sprintf("payments: %d requests for %d purchases made %d payments; %d purchases were paid twice\n", requests, len(keys), made, doubled)
}
