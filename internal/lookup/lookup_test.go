// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lookup_test

import (
	"testing"

	"github.com/stagger-go/stagger/internal/lookup"
)

func filled(paths ...string) *lookup.Table[string] {
	t := new(lookup.Table[string])
	for _, path := range paths {
		t.Put(path, &path)
	}
	return t
}

func find(t *lookup.Table[string], path string) string {
	if found := t.Find(path); found != nil {
		return *found
	}
	return "nothing"
}

func TestFind(t *testing.T) {
	t.Parallel()
	table := filled("/a.B/C", "/a.B/", "/a.*/", "/a.b.*/", "/*.*/", "/.*/")
	for path, want := range map[string]string{
		"/a.B/C": "/a.B/C", "/a.B/D": "/a.B/", "/a.E/F": "/a.*/", "/a.b.E/F": "/a.b.*/", "/a.b.c.E/F": "/a.b.*/",
		"/aa.E/F": "nothing", "/E/F": "nothing", "/.E/F": "nothing", "/*.E/F": "nothing", "": "nothing", "/": "nothing", "a": "nothing",
	} {
		if got := find(table, path); got != want {
			t.Errorf("%q finds %s; want %s", path, got, want)
		}
	}
	table.Put("/", new("everything"))
	if got := find(table, "/aa.E/F"); got != "everything" {
		t.Errorf("what is named nowhere finds %s", got)
	}
	if got := find(table, "/a.E/F"); got != "/a.*/" {
		t.Errorf("a package of a table with an entry for everything finds %s", got)
	}
}

func TestClone(t *testing.T) {
	t.Parallel()
	table := filled("/a.B/C", "/a.*/")
	clone := table.Clone()
	clone.Put("/a.B/D", new("another"))
	if got := find(table, "/a.B/D"); got != "/a.*/" {
		t.Errorf("a clone changes what it was made of: %s", got)
	}
	if got := find(&clone, "/a.B/C") + find(&clone, "/a.B/D") + find(&clone, "/a.E/F"); got != "/a.B/Canother/a.*/" {
		t.Errorf("the clone finds %s", got)
	}
}
