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
	r.Errorf("a", strings.Repeat("x", 100), "is wrong")
	e, ok := errors.AsType[*Error](r.Err())
	if !ok || e.Diagnostics[0].Value != `"`+strings.Repeat("x", 64)+`…"` {
		t.Errorf("Err = %v; want a short value", r.Err())
	}
}
