// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// object is a JSON object.
type object = map[string]any

// compiled returns policy.json, compiled by a library that first checks the schema itself.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource(home, fromJSON(t, read(t, "../../proto/stagger/policy/v1/policy.json"))); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(home)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fromJSON decodes JSON, with numbers as written.
func fromJSON(t testing.TB, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return v
}

// fromFile reads a file as editors do. It returns false if they would report it as invalid YAML or JSON.
func fromFile(t testing.TB, data []byte) (any, bool) {
	t.Helper()
	var v any
	if bytes.HasPrefix(data, []byte("{")) && !json.Valid(data) || yaml.Unmarshal(data, &v) != nil {
		return nil, false
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	return fromJSON(t, text), true
}

// document is policy/testdata/good/all.yaml, which has every key, possibly with other values.
type document struct {
	root any
}

func whole(t testing.TB) document {
	t.Helper()
	v, ok := fromFile(t, read(t, "../../policy/testdata/good/all.yaml"))
	if !ok {
		t.Fatal("all.yaml cannot be read")
	}
	return document{v}
}

// place is the position of a value, a list or a map.
type place struct {
	path []any // of keys and indices
	now  any
}

func (p place) String() string { return fmt.Sprint(p.path) }

func (d document) places() []place {
	var list []place
	var walk func(at []any, v any)
	walk = func(at []any, v any) {
		if len(at) > 0 {
			list = append(list, place{slices.Clone(at), v})
		}
		switch v := v.(type) {
		case object:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(append(at, k), v[k])
			}
		case []any:
			for i := range v {
				walk(append(at, i), v[i])
			}
		}
	}
	walk(nil, d.root)
	return list
}

// around returns a small document that contains the place: budgets then have only names, like other entries.
func (d document) around(t testing.TB, p place) document {
	all, _ := d.root.(object)
	key, _ := p.path[0].(string)
	if key != "methodConfig" || len(p.path) == 1 {
		return document{object{key: all[key]}}
	}
	small := object{"budgets": fromJSON(t, []byte(`[{"name": "shared", "bucket": {}}, {"name": "tokens", "bucket": {}}]`))}
	entries, _ := all[key].([]any)
	var list []any
	for i, e := range entries {
		if entry, _ := e.(object); i != p.path[1] {
			e = object{"name": entry["name"]}
		}
		list = append(list, e)
	}
	small[key] = list
	return document{small}
}

// with returns the document with another value at a path; gone removes the key. If the path no longer exists, nothing
// changes.
func (d document) with(path []any, v any) document { return document{put(d.root, path, v)} }

type gone struct{}

func put(in any, path []any, v any) any {
	if len(path) == 0 {
		return v
	}
	switch in := in.(type) {
	case object:
		k, ok := path[0].(string)
		if old, there := in[k]; ok && there {
			m := maps.Clone(in)
			if m[k] = put(old, path[1:], v); m[k] == (gone{}) {
				delete(m, k)
			}
			return m
		}
	case []any:
		i, ok := path[0].(int)
		if ok && i < len(in) {
			l := slices.Clone(in)
			if l[i] = put(in[i], path[1:], v); l[i] == (gone{}) {
				l = slices.Delete(l, i, i+1)
			}
			return l
		}
	}
	return in
}

func (d document) text(t interface{ Fatal(args ...any) }) []byte {
	data, err := json.Marshal(d.root)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
