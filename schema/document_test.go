// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// object is a JSON object.
type object = map[string]any

// compiled is policy.json, as a library reads it that checks the schema itself first.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource(home, fromJSON(t, read(t, "policy.json"))); err != nil {
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

// fromJSON keeps numbers as they are written.
func fromJSON(t testing.TB, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return v
}

// fromFile reads a file as editors do; false if they show that it is no YAML or JSON.
func fromFile(data []byte) (any, bool) {
	if bytes.HasPrefix(data, []byte("{")) && !json.Valid(data) {
		return nil, false
	}
	var n yaml.Node
	if yaml.Unmarshal(data, &n) != nil || len(n.Content) == 0 {
		return nil, false
	}
	return plain(n.Content[0], 0)
}

// plain is what YAML 1.2 takes a value for; false if it holds itself, or a key twice.
func plain(n *yaml.Node, depth int) (any, bool) {
	if depth > 40 {
		return nil, false
	}
	switch n.Kind {
	case yaml.AliasNode:
		return plain(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, ok := plain(c, depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case yaml.MappingNode:
		m := object{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, ok := plain(n.Content[i+1], depth+1)
			if _, twice := m[n.Content[i].Value]; !ok || twice {
				return nil, false
			}
			m[n.Content[i].Value] = v
		}
		return m, true
	default:
		return scalar(n), true
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value)
		}
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && f-f == 0 {
			return f
		}
		return json.Number("1e999") // .inf, .nan
	}
	return n.Value
}
