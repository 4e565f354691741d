// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"
)

// EachMistake calls test for copies of a valid YAML file: with a value of another kind in each place, without each key, and with each key
// misspelled. what says what was done.
func EachMistake(t *testing.T, file string, test func(what, text string)) {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(file), &root); err != nil {
		t.Fatal(err)
	}
	m := mistakes{t, &root, test}
	m.inside("", root.Content[0])
}

type mistakes struct {
	t    *testing.T
	root *yaml.Node
	test func(what, text string)
}

func (m mistakes) make(what string) {
	m.t.Helper()
	text, err := yaml.Marshal(m.root)
	if err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}
	m.test(what, string(text))
}

// values are of all kinds.
func values() []*yaml.Node {
	return []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!int", Value: "7"},
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: "x"},
		{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"},
		{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"},
		{Kind: yaml.SequenceNode},
		{Kind: yaml.MappingNode},
	}
}

// at puts the mistakes in the place of a value, and inside it.
func (m mistakes) at(path string, n *yaml.Node) {
	m.t.Helper()
	was := *n
	for _, other := range values() {
		if other.Kind == yaml.MappingNode && was.Kind != yaml.ScalarNode {
			continue // an empty object may lack several keys, which is more than one mistake
		}
		*n = *other
		m.make(fmt.Sprintf("%s: %s %q", path, other.ShortTag(), other.Value))
	}
	*n = was
	m.inside(path, n)
}

func (m mistakes) inside(path string, n *yaml.Node) {
	m.t.Helper()
	if n.Kind == yaml.SequenceNode {
		for i, item := range n.Content {
			m.at(fmt.Sprintf("%s[%d]", path, i), item)
		}
		return
	}
	all := n.Content
	for i := 0; i < len(all); i += 2 {
		key := all[i].Value
		n.Content = slices.Delete(slices.Clone(all), i, i+2)
		m.make(fmt.Sprintf("%s without %s", path, key))
		n.Content = all
		all[i].Value = key + "x"
		m.make(fmt.Sprintf("%s.%s misspelled", path, key))
		all[i].Value = key
		m.at(path+"."+key, all[i+1])
	}
}
