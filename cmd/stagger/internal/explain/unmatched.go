// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/lookup"
	"github.com/stagger-go/stagger/policy"
)

// unmatched returns warnings about names of a file that match no method of the API, most of which are typing errors.
func unmatched(file string, data []byte, set *decision.Set, known cli.API) []policy.Diagnostic {
	methods := map[string][]string{}
	for _, s := range known.Services() {
		methods[string(s.FullName())] = cli.Methods(s)
	}
	services := slices.Sorted(maps.Keys(methods))
	report := document.NewReport(file)
	document.Parse(report, data, document.Format{}) // for the places
	var list []policy.Diagnostic
	for i, m := range set.Config().Methods {
		for j, name := range m.Names {
			if message := mismatch(name, services, methods); message != "" {
				field := fmt.Sprintf("methodConfig[%d].name[%d]", i, j)
				list = append(list, report.Locate(policy.Diagnostic{Severity: document.SeverityWarning, Field: field, Value: name, Message: message}))
			}
		}
	}
	return list
}

// mismatch returns why a name matches nothing, or "" if it matches.
func mismatch(name string, services []string, methods map[string][]string) string {
	service, method := lookup.Split(name)
	list, ok := methods[service]
	switch {
	case service == "":
		return ""
	case !ok:
		return "the API has no such service" + suggestion(service, services)
	case method == "" || slices.Contains(list, method):
		return ""
	default:
		return "the service has no such method" + suggestion(method, list)
	}
}

// suggestion returns a hint at a similar name, if there is one.
func suggestion(name string, names []string) string {
	if near := document.Nearest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
