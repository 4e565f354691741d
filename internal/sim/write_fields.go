// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// object is a map of keys that is written, without those whose values hold anyway.
type object struct{ fields document.Node }

// node is the object; nil if it has no keys.
func (o *object) node() *document.Node {
	if len(o.fields.Entries) == 0 {
		return nil
	}
	o.fields.Kind = document.Object
	return &o.fields
}

// put adds a value that is there.
func (o *object) put(key string, n *document.Node) {
	if n != nil {
		o.fields.Put(document.Entry{Key: key, Value: n})
	}
}

func (o *object) text(key, value string) {
	if value != "" {
		o.put(key, textNode(value))
	}
}

func (o *object) time(key string, d time.Duration) {
	if d != 0 {
		o.put(key, textNode(d.String()))
	}
}

func (o *object) count(key string, n, fallback int) { o.number(key, float64(n), float64(fallback)) }

func (o *object) number(key string, v, fallback float64) {
	if v != fallback {
		o.put(key, numberNode(v))
	}
}

func (o *object) flag(key string, is, fallback bool) {
	if is != fallback {
		o.put(key, &document.Node{Kind: document.Bool, Text: strconv.FormatBool(is)})
	}
}

func (o *object) code(key string, c, fallback codes.Code) {
	if c != fallback && c != codes.OK {
		o.text(key, policy.CodeName(c))
	}
}

func (o *object) distribution(key string, d *Distribution) {
	if d != nil {
		o.put(key, distributionNode(d))
	}
}

func textNode(s string) *document.Node { return &document.Node{Kind: document.Text, Text: s} }

func numberNode(v float64) *document.Node {
	return &document.Node{Kind: document.Number, Text: strconv.FormatFloat(v, 'f', -1, 64)}
}

// nodeList is a list; nil without values.
func nodeList(items []*document.Node) *document.Node {
	if len(items) == 0 {
		return nil
	}
	return &document.Node{Kind: document.List, Items: items}
}

func list[T any](values []T, node func(*T) *document.Node) *document.Node {
	items := make([]*document.Node, len(values))
	for i := range values {
		items[i] = node(&values[i])
	}
	return nodeList(items)
}
