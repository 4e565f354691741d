// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// docs/overload.md has the numbers of the code: first those of the rules, then those of their terms and effects.
func TestOverloadPage_Numbers(t *testing.T) {
	t.Parallel()
	b := budget.Default()
	if b.Refund != 2 || b.SlowCost != b.Size || evidence.CallPart != 4 || evidence.MostSlow*5 != evidence.Remembered {
		t.Errorf("a bucket of %+v, %d of %d: words such as twice, whole, fifth and quarter must be others", b, evidence.MostSlow, evidence.Remembered)
	}
	wantFigures(t, "docs/overload.md", []pageFigures{
		{"retry budget", []any{b.Size}},
		{"successful call", []any{b.PerSuccess}},
		{"slow one", []any{1, b.SlowCost}},
		{"successful retry", []any{b.RefundSize}},
		{"slow one", []any{evidence.MostSlow, evidence.Remembered}},
		{"very slow", []any{evidence.Remembered}},
		{"Time alone", []any{budget.RefillTime.Minutes()}},
		{"busy client", []any{budget.Window.Seconds()}},
		{"a fifth", []any{evidence.Remembered}},
		{"parallel", []any{fmt.Sprint(evidence.Enough, "th")}},
		{"an overload", []any{evidence.MostSlow, evidence.Remembered}},
		{"pay for themselves", []any{100 / b.Refund}},
		{"*blip*", []any{b.Refund}},
		{"an outage", []any{budget.AllFail, budget.Probe.Seconds()}},
	})
	picture := read(t, "docs/diagrams/budget.svg")
	for _, want := range []string{
		fmt.Sprintf("holds %v ", b.Size), fmt.Sprintf("up to %v.", b.RefundSize), fmt.Sprintf("After %d failures", budget.AllFail),
		fmt.Sprintf(">after %d failures", budget.AllFail), fmt.Sprintf(">%v</text>", b.Size), fmt.Sprintf(">%v</text>", b.RefundSize),
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("docs/diagrams/budget.svg doesn't show %q", want)
		}
	}
}

// The file that writes the default budget out in full means the default, and names every key of a bucket.
func TestOverloadPage_Default(t *testing.T) {
	t.Parallel()
	files := blocks(read(t, "docs/overload.md"), "yaml")
	if len(files) == 0 {
		t.Fatal("no policy file")
	}
	set := testkit.Must(policy.Parse("retry.yaml", []byte(files[0])))(t)
	budgets := compiled.OfSet(set).Budgets
	if len(budgets) != 1 || budgets[0].Config != budget.Default() || budgets[0].Scope != "TARGET" {
		t.Errorf("the file has %+v; want the default, %+v", budgets, budget.Default())
	}
	for field := range reflect.TypeFor[budget.BucketConfig]().Fields() {
		if key := strings.ToLower(field.Name[:1]) + field.Name[1:]; !strings.Contains(files[0], key+": ") {
			t.Errorf("the file leaves %s out", key)
		}
	}
}
