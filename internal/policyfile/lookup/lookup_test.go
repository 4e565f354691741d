// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lookup_test

import (
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/lookup"
)

func TestFind(t *testing.T) {
	t.Parallel()
	table := lookup.Table[string]{"/a.B/C": new("method"), "/a.B/": new("service")}
	find := func(path string) string {
		if found := table.Find(path); found != nil {
			return *found
		}
		return "nothing"
	}
	for path, want := range map[string]string{
		"/a.B/C": "method", "/a.B/D": "service", "/aa.E/F": "nothing", "/E/F": "nothing", "": "nothing", "/": "nothing", "a": "nothing",
	} {
		if got := find(path); got != want {
			t.Errorf("%q finds %s; want %s", path, got, want)
		}
	}
	table["/"] = new("everything")
	if got := find("/aa.E/F") + find("/a.B/D"); got != "everythingservice" {
		t.Errorf("with an entry for everything, it finds %s", got)
	}
}
