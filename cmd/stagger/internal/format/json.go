// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"errors"

	"go.yaml.in/yaml/v4"
)

// readJSON makes the same tree of a JSON file that a YAML file has.
func readJSON(data []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := readValue(d)
	if err != nil {
		return nil, err
	}
	return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{n}}, nil
}

func readValue(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for d.More() {
			c, err := readValue(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err := d.Token()
		return n, err
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: textTag, Value: t}, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: map[bool]string{true: "true", false: "false"}[t]}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: nullTag, Value: null}, nil
	}
}

func writeJSON(root *yaml.Node, _ gaps) ([]byte, error) {
	var tight, out bytes.Buffer
	if err := writeValue(&tight, root.Content[0]); err != nil {
		return nil, err
	}
	if err := json.Indent(&out, tight.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func writeValue(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		return writeList(b, n.Content, "{}", ":,")
	case yaml.SequenceNode:
		return writeList(b, n.Content, "[]", ",,")
	case yaml.ScalarNode:
		if n.Tag != textTag {
			b.WriteString(n.Value)
			return nil
		}
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		return e.Encode(n.Value)
	default:
		return errors.New("JSON has no aliases") // cannot be: it was read from JSON
	}
}

// writeList writes values in brackets, with separators that take turns.
func writeList(b *bytes.Buffer, list []*yaml.Node, brackets, separators string) error {
	b.WriteByte(brackets[0])
	for i, c := range list {
		if i > 0 {
			b.WriteByte(separators[(i-1)%2])
		}
		if err := writeValue(b, c); err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}
