// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := NewReport("f")
	Parse(r, []byte("a: {b: 1}\nc: 'x'"), Format{})
	r.Errorf("c", "other", "as written")
	r.Warnf("a.b", 1, "may surprise")
	r.Errorf("a.b", 2, "as written")
	r.Errorf("a.d", 3, "must be there")
	r.Errorf("e", nil, "must be there")
	want := `f:1:1: e: is required; must be there
f:1:4: a.d: is required; must be there
f:1:8: a.b: 1: as written
f:2:4: c: "x": as written`
	if err := r.Err(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	warnings := r.Warnings()
	if len(warnings) != 1 || warnings[0].Severity != SeverityWarning || warnings[0].String() != "f:1:8: a.b: 1: may surprise" {
		t.Errorf("warnings: %+v", warnings)
	}
}

func TestReportOneMistakeIsReportedOnce(t *testing.T) {
	t.Parallel()
	var r Report
	r.Skip("a.b")
	r.Skip("c")
	r.Errorf("d", nil, "is wrong")
	for _, field := range []string{"a.b", "a.b.c", "a.b[0].c", "c"} {
		r.Errorf(field, nil, "is wrong too")
	}
	if r.Whole("a") || r.Whole("a.b.c") || !r.Whole("e") || !r.Skipped("a.b[0]") || r.Skipped("a") {
		t.Error("the report doesn't know which fields were readable")
	}
	if got := r.Err().Error(); got != "d: is wrong" {
		t.Errorf("got %s", got)
	}
}

func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	var r Report
	for range 5000 {
		r.Errorf("a", nil, "%s", Lazy(func() string { return "is wrong" }))
		r.Warnf("b", nil, "may surprise")
	}
	if n := r.ErrorCount(); n != 5000 {
		t.Errorf("%d errors; want 5000", n)
	}
	for _, list := range [][]Diagnostic{r.Errors(), r.Warnings()} {
		if last := list[len(list)-1]; len(list) != 1001 || last.String() != "and 4000 more, which are not listed" {
			t.Errorf("%d, and last %v", len(list), last)
		}
	}
}

func TestReportErrIsNilWithoutErrors(t *testing.T) {
	t.Parallel()
	var r Report
	r.Warnf("a", strings.Repeat("x", 100), "may surprise")
	if r.Err() != nil {
		t.Errorf("Err = %v", r.Err())
	}
	r.Errorf("a", "A"+strings.Repeat("x", 100)+"B", "is wrong")
	e, ok := errors.AsType[*Error](r.Err())
	if want := `"A` + strings.Repeat("x", 31) + "…" + strings.Repeat("x", 31) + `B"`; !ok || e.Diagnostics[0].Value != want {
		t.Errorf("Err = %v; want a short value with both ends", r.Err())
	}
}

// A name is shown whole, unless it is longer than any.
func TestReportNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long.", 150) + "Name"
	for _, field := range []string{"methodConfig[0].name[3]", "scripts[1].method", "methodConfig[0].name[0].service"} {
		var r Report
		r.Errorf(field, long, "is wrong")
		r.Errorf(field, strings.Repeat(long, 1000), "is wrong")
		e, ok := errors.AsType[*Error](r.Err())
		if !ok || e.Diagnostics[0].Value != `"`+long+`"` || len(e.Diagnostics[1].Value) > 1100 {
			t.Errorf("%s: %v", field, r.Err())
		}
	}
}

// A warning about a field that a document leaves out is placed at what contains it. Only an error requires it.
func TestReportMissingFields(t *testing.T) {
	t.Parallel()
	r := NewReport("f")
	r.Read("", Parse(r, []byte("a:\n- {b: 1}\n"), Format{}), func(f *Fields) { f.List("a", func(string, *Node) {}) })
	r.Warnf("a[0].b.c", nil, "may surprise")
	r.Warnf("a[0].c", nil, "may surprise")
	r.Warnf("x", nil, "may surprise")
	r.Errorf("a[0].c", 5, "must be less")
	note := r.Locate(Diagnostic{Severity: SeverityNote, Field: "x.y[0]", Value: "v", Message: "is good to know"})
	got := Lines(append(r.Warnings(), note)) + "\n" + r.Err().Error()
	const want = "f:1:1: may surprise\nf:2:3: a[0]: may surprise\nf:2:7: a[0].b: may surprise\nf:1:1: v: is good to know\n" +
		"f:2:3: a[0].c: is required; must be less"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
