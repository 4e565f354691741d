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
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// The words of docs/overload.md have the numbers of the code: first the rules, then their terms and effects.
func TestOverloadPage_Numbers(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(read(t, "docs/overload.md")), " ")
	b := budget.Default()
	if b.Size == 0 || b.Refund != 2 || b.SlowCost != b.Size || evidence.CallPart != 4 || evidence.MostSlow*5 != evidence.Remembered {
		t.Errorf("a bucket of %+v, %d of %d: the sentences must be others", b, evidence.MostSlow, evidence.Remembered)
	}
	rules := fmt.Sprintf("Each target has a retry budget of %v. A successful call adds %v. A retry costs 1, an attempt after a slow one %v, or 1 if later "+
		"calls overtook it and none of %d was slow. A successful retry refunds twice its cost, up to %v. With over %d slow responses of "+
		"%[4]d, no attempt follows a slow one; with %[4]d very slow, none any. Slow means longer than the attempt's own timeout.",
		b.Size, b.PerSuccess, b.SlowCost, evidence.Remembered, b.RefundSize, evidence.MostSlow)
	if n := len(strings.Fields(rules)); n > 75 {
		t.Errorf("the rules have %d words; want at most 75", n)
	}
	const busy, quiet, fleet, added, size = 100, 20, 100, 0.5, 20 // calls a second, processes, and the numbers of two remedies
	successes := budget.Window.Seconds()
	for _, want := range []string{
		rules,
		fmt.Sprintf("Time alone fills it in %v minutes. A busy client's bucket holds what the successes of %v seconds add",
			budget.RefillTime.Minutes(), budget.Window.Seconds()),
		fmt.Sprintf("Of fewer than %d responses, a fifth may be slow. Before a method's %dth response, no attempt is sent in parallel",
			evidence.Remembered, evidence.Enough),
		fmt.Sprintf("More than %d of %d stop attempts", evidence.MostSlow, evidence.Remembered),
		fmt.Sprintf("pay for themselves while %v %% of them succeed", 100/b.Refund),
		fmt.Sprintf("each that succeeds pays for %v more.", b.Refund),
		fmt.Sprintf("A quiet client sends %v retries, or %v if retries have succeeded just before; a client of %d calls a second sends %v.",
			b.Size, b.RefundSize, busy, busy*successes*b.PerSuccess),
		fmt.Sprintf("Then each process sends one in %v seconds.", budget.RefillTime.Seconds()/b.Size),
		fmt.Sprintf("With `perSuccess: %v`, a client of %d calls a second sends %v retries instead of %v.",
			added, quiet, quiet*successes*added, quiet*successes*b.PerSuccess),
		fmt.Sprintf("With `size: %d`, a hundred quiet processes send 2,000 instead of %v.", size, fleet*b.Size),
		fmt.Sprintf("Each has a budget of %v and", b.Size),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/overload.md doesn't say what the code does:\n%s", want)
		}
	}
	picture := read(t, "docs/diagrams/budget.svg")
	for _, want := range []string{
		fmt.Sprintf("The bucket holds %v retries.", b.Size), fmt.Sprintf("fill it up to %v.", b.RefundSize),
		fmt.Sprintf("adds one retry in %v s</text>", budget.RefillTime.Seconds()/b.Size),
		fmt.Sprintf(">%v</text>", b.Size), fmt.Sprintf(">%v</text>", b.RefundSize),
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
	budgets := set.Compiled().Budgets
	if len(budgets) != 1 || budgets[0].Config != budget.Default() || budgets[0].Scope != "TARGET" {
		t.Errorf("the file has %+v; want the default, %+v", budgets, budget.Default())
	}
	for field := range reflect.TypeFor[budget.BucketConfig]().Fields() {
		if key := strings.ToLower(field.Name[:1]) + field.Name[1:]; !strings.Contains(files[0], key+": ") {
			t.Errorf("the file leaves %s out", key)
		}
	}
}
