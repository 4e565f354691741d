// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package stagger_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policies"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// The words of docs/load.md have the numbers of the code: first the rules, then their terms and effects.
func TestLoadPage_Numbers(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(read(t, "docs/load.md")), " ")
	b := budget.Default()
	if b.Size == 0 || latency.UsualPart != 0.5 || methods.MostLong != 0 {
		t.Errorf("a bucket of %v, the quantile %v, %d long: the sentences must be others", b.Size, latency.UsualPart, methods.MostLong)
	}
	rules := fmt.Sprintf("A client's calls to one target share a bucket of extra attempts. It holds %v retries, and starts full. "+
		"A retry costs 1, and an attempt after a slow one %v. One that helps returns %v times its cost, up to a bucket of %v. "+
		"A call that succeeds adds %v, and time alone fills the bucket in %v minutes. "+
		"A busy client's bucket holds what the successes of %v seconds add, if that is more. A call that misses its deadline takes %v. "+
		"While all of the target's last %v responses took more than %v times their method's usual time, nothing is retried. "+
		"While one did, or the usual time is unknown, no attempt follows a slow one.",
		b.Size, b.SlowCost, b.Refund, b.RefundSize, b.PerSuccess, b.RefillTime.Minutes(), b.Window.Seconds(), b.MissedCost,
		latency.Remembered, methods.LongAbove)
	if n := len(strings.Fields(rules)); n > 120 {
		t.Errorf("the rules have %d words; want at most 120", n)
	}
	const busy = 100 // calls a second
	most := busy * b.Window.Seconds() * b.PerSuccess
	for _, want := range []string{
		"# How much load retries add " + rules,
		fmt.Sprintf("in the last %v to %v minutes. It is known after %v of them.",
			latency.UsualAge.Minutes(), 2*latency.UsualAge.Minutes(), latency.UsualLeast),
		fmt.Sprintf("more than %v %% of its call's time", 100*methods.LongPart),
		fmt.Sprintf("Responses older than %v seconds don't count. Of several fast responses within %v seconds, one counts.",
			latency.Age.Seconds(), latency.FastInterval.Seconds()),
		fmt.Sprintf("an attempt had run for more than %v times the usual time", methods.LongAbove),
		fmt.Sprintf("pay for themselves while %v %% of them help", 100/b.Refund),
		fmt.Sprintf("each retry after the blip pays for %v more", b.Refund),
		fmt.Sprintf("A client of %d calls a second has a bucket of %v.", busy, most),
		fmt.Sprintf("A quiet client sends %v retries, or %v if retries have helped just before. A client of %d calls a second sends %v.",
			b.Size, b.RefundSize, busy, most),
		fmt.Sprintf("Then each process sends one in %v seconds.", b.RefillTime.Seconds()/b.Size),
		fmt.Sprintf("fill the bucket up to %v. While all fail, it is empty within moments, and time alone adds one retry in %v seconds",
			b.RefundSize, b.RefillTime.Seconds()/b.Size),
		fmt.Sprintf("Each has a bucket of %v and", b.Size),
		fmt.Sprintf("A hundred of them may send %v retries into an outage.", 100*b.Size),
		fmt.Sprintf("one long response holds attempts after slow ones back for up to %v seconds", latency.Age.Seconds()),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/load.md doesn't say what the code does:\n%s", want)
		}
	}
	picture := read(t, "docs/diagrams/budget.svg")
	for _, want := range []string{
		fmt.Sprintf("The bucket holds %v retries.", b.Size), fmt.Sprintf("fill it up to %v.", b.RefundSize),
		fmt.Sprintf("adds one retry in %v s</text>", b.RefillTime.Seconds()/b.Size),
		fmt.Sprintf(">%v</text>", b.Size), fmt.Sprintf(">%v</text>", b.RefundSize),
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("docs/diagrams/budget.svg doesn't show %q", want)
		}
	}
}

// The file that writes the default budget out in full means the default, and names every key of a bucket.
func TestLoadPage_Default(t *testing.T) {
	t.Parallel()
	files := blocks(read(t, "docs/load.md"), "yaml")
	if len(files) != 1 {
		t.Fatalf("%d policy files; want one", len(files))
	}
	set := must.Get(policy.Parse("retry.yaml", []byte(files[0])))(t)
	budgets := policies.Config(set).Budgets
	if len(budgets) != 1 || budgets[0].Config != budget.Default() || budgets[0].Scope != "TARGET" {
		t.Errorf("the file has %+v; want the default, %+v", budgets, budget.Default())
	}
	for field := range reflect.TypeFor[budget.BucketConfig]().Fields() {
		if key := strings.ToLower(field.Name[:1]) + field.Name[1:]; !strings.Contains(files[0], " "+key+": ") {
			t.Errorf("the file leaves %s out", key)
		}
	}
}
