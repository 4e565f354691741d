// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import "go.yaml.in/yaml/v4"

// Place is where a name stands in a policy file, and its field.
type Place struct {
	Line, Column int // from 1; 0 if it is not known
	Entry, Name  int // methodConfig[Entry].name[Name]
}

// Places finds the names of a file that is known to be a policy file, in its order: that of
// [policy.Set.Policies]. YAML's reader knows the places in JSON too.
func Places(data []byte) []Place {
	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	var list []Place
	for i, entry := range content(value(document.Content[0], "methodConfig")) {
		for j, name := range content(value(entry, "name")) {
			list = append(list, Place{name.Line, name.Column, i, j})
		}
	}
	return list
}

// value is that of a key; nil if there is none.
func value(n *yaml.Node, key string) *yaml.Node {
	list := content(n)
	for i := 0; i+1 < len(list); i += 2 {
		if list[i].Value == key {
			return list[i+1]
		}
	}
	return nil
}

// content is what stands in a list or map. It does not follow aliases: a name that stands twice is a mistake.
func content(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Content
}
