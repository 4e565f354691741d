// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// parse returns a valid file's tree for YAML. That of a JSON file comes from this project's reader, since YAML has other escapes:
// in it, the two halves of a surrogate pair are no character. That of a YAML file keeps its comments.
func parse(name string, data []byte) (*yaml.Node, error) {
	if document.IsJSON(name, data) {
		return toYAML(document.Parse(document.NewReport(name), data, document.Format{})), nil
	}
	var file yaml.Node
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	return file.Content[0], nil
}

// toYAML converts a tree of a JSON file.
func toYAML(n *document.Node) *yaml.Node {
	switch n.Kind {
	case document.Object:
		object := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range n.Entries {
			object.Content = append(object.Content, text(e.Key), toYAML(e.Value))
		}
		return object
	case document.List:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range n.Items {
			list.Content = append(list.Content, toYAML(item))
		}
		return list
	case document.Text:
		return text(n.Text)
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: n.Raw} // a number, true, false or null: the same in YAML
	}
}

func text(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}
