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
	at := places(file, data)
	var list []policy.Diagnostic
	for i, p := range set.Policies() {
		message := mismatch(p.Name(), services, methods)
		if message == "" {
			continue
		}
		d := policy.Diagnostic{Severity: document.SeverityWarning, File: file, Field: "name", Value: p.Name(), Message: message}
		if i < len(at) {
			d.Line, d.Column = at[i].Line, at[i].Column
			d.Field = fmt.Sprintf("methodConfig[%d].name[%d]", at[i].entry, at[i].name)
		}
		list = append(list, d)
	}
	return list
}

// mismatch returns why a name matches nothing, or "" if it matches.
func mismatch(name string, services []string, methods map[string][]string) string {
	service, method := lookup.Split(name)
	if service == "" {
		return ""
	}
	list, ok := methods[service]
	if !ok {
		return "the API has no such service" + suggestion(service, services)
	}
	if method == "" {
		return ""
	}
	if slices.Contains(list, method) {
		return ""
	}
	return "the service has no such method" + suggestion(method, list)
}

// suggestion returns a hint at a similar name, if there is one.
func suggestion(name string, names []string) string {
	if near := document.Nearest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// place is the position of a name in a policy file, and its field.
type place struct {
	document.Position

	entry, name int // methodConfig[entry].name[name]
}

// places returns the positions of the names in a valid policy file, in the order of [policy.Set.Policies].
func places(file string, data []byte) []place {
	root := document.Parse(document.NewReport(file), data, document.Format{Name: "policy file", Key: "methodConfig"})
	if root == nil || root.Get("methodConfig") == nil {
		return nil
	}
	var list []place
	for i, entry := range root.Get("methodConfig").Items {
		if names := entry.Get("name"); names != nil {
			for j, name := range names.Items {
				list = append(list, place{name.At, i, j})
			}
		}
	}
	return list
}
