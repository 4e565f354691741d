// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/decision"
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
		}
	})
}

// checkProblems wants each problem with a place and a text, in the order of the file.
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

// use asks a set all that the interceptor asks it.
func use(t *testing.T, set *policy.Set) {
	t.Helper()
	declared := map[string]bool{"": true, policy.NoBudget: true}
	for _, b := range set.Config().Budgets {
		declared[b.Name] = true
		if ratio, ok := b.Config.(budget.RatioConfig); ok && ratio.Fleet.Name != "" {
			ratio.Fleet = budget.FleetConfig{} // where its pool is says the program
			b.Config = ratio
		}
		if made, err := budget.New(b.Config); err != nil || made == nil {
			t.Errorf("budget %+v cannot be made: %v", b, err)
		}
	}
	compiled := decision.Compile(set)
	for i, p := range compiled.Policies() {
		if p.Index() != i || !declared[p.Budget()] || compiled.Lookup(p.Name().String()) != p {
			t.Errorf("policy %d for %v cannot be used", i, p.Name())
		}
		if retry := p.Spec().Retry; retry != nil {
			if d := retry.Backoff.Delay(0, 0, 0.5); d < 0 || p.MaxAttempts() < 2 {
				t.Errorf("%v: %d attempts, a wait of %v", p.Name(), p.MaxAttempts(), d)
			}
		}
	}
	set.Warnings()
}
