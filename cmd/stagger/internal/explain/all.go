// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/policy"
)

// row is one method of a service, or what holds for the methods that have no row.
type row struct {
	explain.Effect

	service, method string // both or the second may be others
}

// others stands for what the file does not name.
const others = "(others)"

// rowsOfAPI are the methods of an API.
func rowsOfAPI(set *decision.Set, known cli.API) []row {
	var rows []row
	for _, s := range known.Services() {
		for _, method := range cli.Methods(s) {
			name := policy.Name{Service: string(s.FullName()), Method: method}
			rows = append(rows, row{effectOf(set, known, name.String()), name.Service, name.Method})
		}
	}
	return rows
}

// rowsOfFile are the methods that a file names, by service in the order of the file.
func rowsOfFile(set *decision.Set) []row {
	policies := set.Policies()
	rows := make([]row, 0, len(policies))
	var services []string // in the order of the file
	for _, p := range policies {
		name := p.Name()
		path := name.String()
		switch {
		case name.Package() != "":
			path = "/" + name.Package() + "." + others + "/" + others // which no entry names
		case name.Service == "":
			path = "/" + others + "/" + others // which only an entry for everything is for
		}
		r := row{effectOf(set, cli.API{}, path), cmp.Or(name.Service, others), cmp.Or(name.Method, others)}
		if p.Spec().Idempotency == policy.IdempotencyDeclared && p.IdempotencyKey() == "" {
			r.Because = "unless its idempotency_level says that it is safe"
		}
		rows = append(rows, r)
		if name.Service != "" && !slices.Contains(services, r.service) {
			services = append(services, r.service)
		}
	}
	services = append(services, others)
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(slices.Index(services, a.service), slices.Index(services, b.service)),
			cmp.Compare(rank(a.method), rank(b.method)),
		)
	})
	return rows
}

// rank puts the others behind what has a name.
func rank(method string) int {
	if method == others {
		return 1
	}
	return 0
}

// effectOf is the effect for a Retrier with the file's cap of attempts.
func effectOf(set *decision.Set, known cli.API, path string) explain.Effect {
	return explain.EffectOf(set, known.Level, path, set.Config().MaxAttemptsLimit)
}
