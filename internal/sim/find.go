// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// find is the node of a field such as "phases[0].kind", or of the nearest that is there around it.
func find(n *yaml.Node, path string) *yaml.Node {
	path = strings.ReplaceAll(path, "[", ".[")
	for step := range strings.SplitSeq(path, ".") {
		next := inner(n, step)
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func inner(n *yaml.Node, step string) *yaml.Node {
	if number, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(number, "]"))
		if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
			return nil
		}
		return n.Content[i]
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	}
	return nil
}
