// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package running_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/running"
)

var start = time.Unix(1000, 0)

func shown(r *running.Calls) string {
	var text strings.Builder
	for _, m := range r.Methods() {
		fmt.Fprintf(&text, "%d of %s at %s since %d; ", m.Calls, m.Method, m.Target, m.Since.Unix()-start.Unix())
	}
	return text.String()
}

// Calls end in any order, and each method has the time of its oldest call.
func TestCalls(t *testing.T) {
	t.Parallel()
	var r running.Calls
	begin := func(parent context.Context, method string, after int) context.Context {
		return r.Begin(parent, method, "a", start.Add(time.Duration(after)*time.Second))
	}
	first, second, third := begin(t.Context(), "Get", 0), begin(t.Context(), "Get", 1), begin(t.Context(), "Get", 2)
	inner := begin(context.WithoutCancel(second), "List", 3)
	for _, row := range []struct {
		end  context.Context
		want string
	}{
		{t.Context(), "3 of Get at a since 0; 1 of List at a since 3; "}, // not counted
		{second, "2 of Get at a since 0; 1 of List at a since 3; "},
		{second, "2 of Get at a since 0; 1 of List at a since 3; "},
		{first, "1 of Get at a since 2; 1 of List at a since 3; "},
		{third, "1 of List at a since 3; "},
		{inner, ""},
	} {
		r.End(row.end)
		if got := shown(&r); got != row.want {
			t.Errorf("%q; want %q", got, row.want)
		}
	}
}

func TestCalls_Concurrent(t *testing.T) {
	t.Parallel()
	var r, other running.Calls
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 500 {
				ctx := other.Begin(r.Begin(t.Context(), fmt.Sprint(i%3), "a", start), "all", "a", start)
				r.Methods()
				r.End(ctx)
				other.End(ctx)
			}
		})
	}
	all.Wait()
	if got := shown(&r) + shown(&other); got != "" {
		t.Error(got)
	}
}
