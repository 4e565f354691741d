// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// oldFile returns the file to compare with: the one that --against names or, if that is a folder, the one in it with the
// same path. The second result is whether that file must exist.
func oldFile(old, file string, files int) (path string, required bool, err error) {
	info, err := os.Stat(old)
	switch folder := err == nil && info.IsDir(); {
	case folder && file != "-" && filepath.IsLocal(file):
		return filepath.Join(old, file), false, nil
	case folder:
		return "", false, cli.UsageErrorf("--against %s: is a folder, and %s is not below this one: write a path below this folder", old, cli.FileName(file))
	case files > 1:
		return "", false, cli.UsageErrorf("--against %s: is one file, and %d are compared with it: name a folder that has the old ones by the same paths", old, files)
	default:
		return old, true, nil
	}
}

// against adds warnings about what the file allows and an older one does not. The error is a usage error.
func (r *report) against(c *cobra.Command, old, file string, files int, known cli.API) error {
	path, required, err := oldFile(old, file, files)
	if err != nil || r.set == nil {
		return err
	}
	data, err := cli.ReadFile(c, path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		r.diagnostics = append(r.diagnostics, policy.Diagnostic{Severity: policy.SeverityNote, File: r.file, Message: "is new: there is nothing to compare it with"})
		return nil
	}
	var before *policy.Set
	if err == nil {
		before, err = policy.Parse(path, data)
	}
	if err == nil {
		before, err = known.Join(before)
	}
	if err != nil {
		r.diagnostics = append(r.diagnostics, unreadable(err)...)
		return nil
	}
	found := r.loosened(before, methods(known, before, r.set))
	r.laxer = len(found)
	r.diagnostics = append(r.diagnostics, found...)
	return nil
}

// methods returns the names of both files, and the methods of the API.
func methods(known cli.API, sets ...*policy.Set) (list []string) {
	add := func(method string) {
		if !slices.Contains(list, method) {
			list = append(list, method)
		}
	}
	for _, set := range sets {
		for _, p := range set.Policies() {
			add(p.Name())
		}
	}
	for _, s := range known.Services() {
		for _, m := range cli.Methods(s) {
			add("/" + string(s.FullName()) + "/" + m)
		}
	}
	return list
}

// loosened returns warnings about what became laxer, with methods of the same change in one warning.
func (r *report) loosened(old *policy.Set, methods []string) (list []policy.Diagnostic) {
	was, now := decision.Compile(old), decision.Compile(r.set)
	type change struct{ field, now, was string }
	var changes []change
	of := map[change][]string{}
	add := func(ch change, method string) {
		if of[ch] == nil {
			changes = append(changes, ch)
		}
		of[ch] = append(of[ch], method)
	}
	limits := &comparison{}
	more(limits, "maxAttemptsLimit", was.Config().MaxAttemptsLimit, now.Config().MaxAttemptsLimit)
	more(limits, "maxWaiting", was.Config().MaxWaiting, now.Config().MaxWaiting)
	for _, l := range limits.found {
		add(change{l.key, l.now, l.was}, "all methods")
	}
	for _, method := range methods {
		after := termsOf(now, method)
		for _, l := range laxer(termsOf(was, method), after) {
			add(change{field(after, l.key), l.now, l.was}, method)
		}
	}
	document := r.document()
	for _, ch := range changes {
		d := policy.Diagnostic{
			Severity: policy.SeverityWarning, File: r.file, Field: ch.field, Value: ch.now,
			Message: fmt.Sprintf("is laxer than before (%s) for %s", ch.was, strings.Join(of[ch], ", ")),
		}
		d.Line, d.Column = place(document, ch.field)
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b policy.Diagnostic) int { return a.Line - b.Line })
	return list
}

// field returns the position of a key: in the method's entry, in the API, or none.
func field(t terms, key string) string {
	if key, ok := strings.CutPrefix(key, inFile); ok {
		return key
	}
	for i, m := range t.set.Config().Methods {
		if slices.Contains(m.Names, t.policy.Name()) {
			return document.Item("methodConfig", i) + "." + key
		}
	}
	return key
}

// document returns the tree of a readable file.
func (r *report) document() *document.Report {
	d := document.NewReport(r.file)
	document.Parse(d, r.data, document.Format{Name: "policy file", Key: "methodConfig", MayLack: true})
	return d
}

// place returns the position of a field or, if it is absent, of what would contain it. Settings from a named policy have
// their position there.
func place(d *document.Report, field string) (line, column int) {
	entry, key, _ := strings.Cut(field, "].")
	if ref := d.Node(entry + "].policy"); ref != nil && !strings.HasPrefix(key, "policy") {
		for i := 0; d.Node(document.Item("policies", i)) != nil; i++ {
			named := document.Item("policies", i)
			if name := d.Node(named + ".name"); name != nil && name.Text == ref.Text && (strings.HasPrefix(key, "retryPolicy") || strings.HasPrefix(key, "hedgingPolicy")) {
				field = named + "." + key
			}
		}
	}
	for field != "" {
		if n := d.Node(field); n != nil {
			return n.At.Line, n.At.Column
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return 1, 1
}
