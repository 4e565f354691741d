// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

func FuzzParse(f *testing.F) {
	for _, file := range badFiles(f) {
		f.Add([]byte(file.text))
	}
	good, err := filepath.Glob("testdata/good/*")
	if err != nil || len(good) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range good {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(bomb()))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range []string{"f.yaml", "f.json"} {
			set, err := policy.Parse(file, data)
			if (set == nil) == (err == nil) {
				t.Fatalf("Parse = %v, %v; want one of the two", set, err)
			}
			if err != nil {
				checkProblems(t, file, err)
				continue
			}
			use(t, set)
			wantSameFromConfig(t, set)
		}
	})
}

// wantSameFromConfig checks that a set's config makes the same set. Its warnings have no places, and only a file
// has warnings about spelling and named policies.
func wantSameFromConfig(t *testing.T, set *policy.Set) {
	t.Helper()
	again, err := compiled.NewSet(compiled.OfSet(set).Config)
	if err != nil {
		t.Fatalf("a set's own config is refused: %v", err)
	}
	if !reflect.DeepEqual(compiled.OfSet(again).Config, compiled.OfSet(set).Config) {
		t.Errorf("the config is\n%+v\nand becomes\n%+v", compiled.OfSet(set).Config, compiled.OfSet(again).Config)
	}
	for i, p := range methods.Describe(set).Policies() {
		if q := methods.Describe(again).Policies()[i]; p.Name() != q.Name() || !reflect.DeepEqual(compiled.Of(p).Policy, compiled.Of(q).Policy) {
			t.Errorf("%v: %+v becomes %v: %+v", p.Name(), compiled.Of(p).Policy, q.Name(), compiled.Of(q).Policy)
		}
	}
	said := map[string]int{}
	for _, d := range set.Warnings() {
		if !strings.Contains(d.Message, "gRPC for Go refuses") {
			said[nameField(d.Field)+": "+d.Message]++
		}
	}
	for _, d := range again.Warnings() {
		said[d.Field+": "+d.Message]--
	}
	for text, n := range said {
		if n != 0 {
			t.Errorf("%s: said %d times more of the file than of its config", text, n)
		}
	}
	for _, assume := range []bool{false, true} {
		config, notes := lint.Export(methods.Describe(set), assume)
		if same, sameNotes := lint.Export(methods.Describe(again), assume); string(same) != string(config) ||
			!reflect.DeepEqual(sameNotes, notes) {
			t.Errorf("ServiceConfig = %s, %v\nof the config %s, %v", config, notes, same, sameNotes)
		}
	}
	was := compiled.OfSet(set).Channel()
	if is := compiled.OfSet(again).Channel(); is != was {
		t.Errorf("Channel = %s; of the config %s", was, is)
	}
}

// nameField returns the field of a warning as that of a config, in which a name is one string: in a file it has a service and a method.
func nameField(field string) string {
	if !strings.Contains(field, ".name[") {
		return field
	}
	return strings.TrimSuffix(strings.TrimSuffix(field, ".service"), ".method")
}

// checkProblems checks that each error has a place and a text, in the order of the file.
func checkProblems(t *testing.T, file string, err error) {
	t.Helper()
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok || len(fault.Diagnostics) == 0 {
		t.Fatalf("%v is no *policy.Error with problems", err)
	}
	var before policy.Diagnostic
	for _, p := range fault.Diagnostics {
		if p.File != file || p.Line < 1 || p.Column < 1 || p.Message == "" || !utf8.ValidString(p.String()) {
			t.Errorf("problem %+v lacks something", p)
		}
		if p.Line < before.Line || p.Line == before.Line && p.Column < before.Column {
			t.Errorf("%v stands after %v", p, before)
		}
		before = p
	}
}

// use calls all methods of a set that the interceptor uses.
func use(t *testing.T, set *policy.Set) {
	t.Helper()
	declared := map[string]bool{"": true, "NONE": true}
	for _, b := range compiled.OfSet(set).Budgets {
		declared[b.Name] = true
		if made, err := budget.New(b.Config); err != nil || made == nil {
			t.Errorf("budget %+v cannot be made: %v", b, err)
		}
	}
	described := methods.Describe(set)
	for i, p := range described.Policies() {
		if !declared[p.Budget()] || described.Lookup(p.Name()) != p {
			t.Errorf("policy %d for %v cannot be used", i, p.Name())
		}
		if retry := compiled.Of(p).Retry; retry != nil {
			if d := retry.Backoff.Delay(0, 0, 0.5); d < 0 || p.MaxAttempts() < 2 {
				t.Errorf("%v: %d attempts, a wait of %v", p.Name(), p.MaxAttempts(), d)
			}
		}
	}
	set.Warnings()
}
