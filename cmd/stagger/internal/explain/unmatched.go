// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/policy"
)

// unmatched returns warnings about names of a file that match no method of the API, most of which are typing errors.
func unmatched(set *methods.Set, known cli.API) []policy.Diagnostic {
	all := known.Services()
	services := make([]string, 0, len(all))
	for _, s := range all {
		services = append(services, string(s.FullName()))
	}
	var list []policy.Diagnostic
	for _, p := range set.Policies() {
		if why := mismatch(p.Name(), services, known); why != "" {
			d := set.Compiled().NamesAt[p.Name()]
			d.Value, d.Message = p.Name(), why
			list = append(list, d)
		}
	}
	return list
}

// mismatch returns why a name matches nothing, or "" if it matches.
func mismatch(name string, services []string, known cli.API) string {
	service, _ := lookup.Split(name)
	_, wrong := lookup.Mismatch(name)
	switch {
	case service == "" || wrong != "":
		return wrong
	case !slices.Contains(services, service):
		return "the API has no such service" + methods.DidYouMean(service, services)
	default:
		return known.Only().Lacks(name)
	}
}
