// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// last are the keys that come behind all others of their object: what is short reads best above what is long.
var last = []protoreflect.FullName{
	"stagger.policy.v1.PolicyFile.budgets",
	"stagger.policy.v1.PolicyFile.method_config",
	"stagger.policy.v1.MethodConfig.retry_policy",
	"stagger.policy.v1.MethodConfig.hedging_policy",
}

// arrange puts the keys of an object, and of all in it, into the order of the schema, and writes values in
// their canonical form.
func arrange(n *yaml.Node, md protoreflect.MessageDescriptor) {
	type pair struct {
		rank       int
		key, value *yaml.Node
	}
	var pairs []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		fd := md.Fields().ByJSONName(key.Value)
		if fd == nil { // cannot be: the file has been checked
			return
		}
		unquote(key)
		field(value, fd)
		pairs = append(pairs, pair{rank(fd), key, value})
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return a.rank - b.rank })
	if len(pairs) > 0 {
		keepLast(n.Content[len(n.Content)-2], pairs[len(pairs)-1].key)
	}
	n.Content = n.Content[:0]
	for _, p := range pairs {
		n.Content = append(n.Content, p.key, p.value)
	}
}

// keepLast leaves a comment at the end of an object there, whatever key is the last now.
func keepLast(was, is *yaml.Node) {
	if was == is || was.FootComment == "" {
		return
	}
	is.FootComment = join(is.FootComment, was.FootComment)
	was.FootComment = ""
}

func rank(fd protoreflect.FieldDescriptor) int {
	if i := slices.Index(last, fd.FullName()); i >= 0 {
		return 1000 + i
	}
	return fd.Index()
}

func field(n *yaml.Node, fd protoreflect.FieldDescriptor) {
	if !fd.IsList() {
		one(n, fd)
		return
	}
	for _, item := range n.Content {
		one(item, fd)
		if block(item) { // a comment on its first key is one on the item: "- # comment" is hard to read
			item.HeadComment = join(item.HeadComment, item.Content[0].HeadComment)
			item.Content[0].HeadComment = ""
		}
	}
}

// join puts comments below each other.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

func one(n *yaml.Node, fd protoreflect.FieldDescriptor) {
	if n.Kind == yaml.AliasNode {
		return // what it means is arranged where it stands
	}
	switch fd.Kind() {
	case protoreflect.EnumKind:
		n.Value = enumName(n, fd.Enum())
		n.Tag = textTag
	case protoreflect.MessageKind:
		switch fd.Message().FullName() {
		case "google.protobuf.Duration":
			n.Value = duration(n.Value)
		case "google.protobuf.Struct", "google.protobuf.ListValue":
			return // gRPC's, not ours
		default:
			arrange(n, fd.Message())
		}
	default: // as it is
	}
	unquote(n)
}

// enumName is the name of an enum's value without the prefix, however the file spells it.
func enumName(n *yaml.Node, ed protoreflect.EnumDescriptor) string {
	prefix := strings.TrimSuffix(string(ed.Values().Get(0).Name()), "UNSPECIFIED")
	v := ed.Values().ByName(protoreflect.Name(prefix + strings.ToUpper(n.Value)))
	if number, err := strconv.ParseInt(n.Value, 10, 32); err == nil {
		v = ed.Values().ByNumber(protoreflect.EnumNumber(number))
	}
	if v == nil {
		return n.Value
	}
	return strings.TrimPrefix(string(ed.Values().ByNumber(v.Number()).Name()), prefix) // the first of two names
}

// duration is without needless zeros: 0.050s is 0.05s.
func duration(s string) string {
	whole, fraction, _ := strings.Cut(strings.TrimSuffix(s, "s"), ".")
	sign := ""
	if rest, ok := strings.CutPrefix(whole, "-"); ok {
		sign, whole = "-", rest
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return sign + whole + "s"
}
