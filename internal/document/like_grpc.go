// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// RespelledLikeGRPC returns a text with the spelling of [RespellLikeGRPC], or the text itself if nothing changes. file is
// the name that diagnostics show. The error is an [*Error] about a text that is neither JSON nor YAML.
func RespelledLikeGRPC(file string, data []byte, f Format, md protoreflect.MessageDescriptor) ([]byte, error) {
	report := NewReport(file)
	root := Parse(report, data, f)
	if root == nil {
		return nil, report.Err()
	}
	if !RespellLikeGRPC(root, md) {
		return data, nil
	}
	text, ok := root.JSON(report, "")
	if !ok {
		return nil, report.Err()
	}
	return text, nil
}

// RespellLikeGRPC changes the keys and durations of an object that gRPC for Go accepts in another spelling to the spelling
// of [Decoder]: keys in any case, null values, which count as absent, and durations without digits on one side of the point.
// md describes the object. It reports whether anything has changed.
func RespellLikeGRPC(n *Node, md protoreflect.MessageDescriptor) (changed bool) {
	if n.Kind != Object {
		return false
	}
	before := *n
	n.Entries, n.index = nil, nil
	for _, e := range before.Entries {
		fd := fieldInAnyCase(md, e.Key)
		if fd != nil && e.Value.Kind == Null {
			changed = true
			continue
		}
		if fd != nil {
			changed = respellValue(e.Value, fd) || changed
			// If a key is given in two spellings, keep both: the decoder reports the unknown one.
			if key := fd.JSONName(); key != e.Key && before.Get(key) == nil && n.Get(key) == nil {
				e.Key, changed = key, true
			}
		}
		n.AddEntry(e)
	}
	return changed
}

func respellValue(n *Node, fd protoreflect.FieldDescriptor) (changed bool) {
	switch {
	case fd.Message() == nil:
	case fd.IsList():
		for _, item := range n.Items {
			changed = RespellLikeGRPC(item, fd.Message()) || changed
		}
	case fd.Message().FullName() == "google.protobuf.Duration":
		if text := respellDuration(n); text != n.Text {
			n.Text, changed = text, true
		}
	default:
		return RespellLikeGRPC(n, fd.Message())
	}
	return changed
}

// shortDuration matches durations without digits on one side of the point.
var shortDuration = regexp.MustCompile(`^(-?)(?:(\.[0-9]{1,9})|([0-9]+)\.)s$`)

// respellDuration adds a zero to ".5s" before the point and removes the point of "5.s". It returns other texts unchanged.
func respellDuration(n *Node) string {
	parts := shortDuration.FindStringSubmatch(n.Text)
	switch {
	case n.Kind != Text || parts == nil:
		return n.Text
	case parts[2] != "":
		return parts[1] + "0" + parts[2] + "s"
	default:
		return parts[1] + parts[3] + "s"
	}
}

// fieldInAnyCase returns the field of a key, ignoring case if necessary, as encoding/json does.
func fieldInAnyCase(md protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByJSONName(key); fd != nil {
		return fd
	}
	for i := range md.Fields().Len() {
		if fd := md.Fields().Get(i); strings.EqualFold(fd.JSONName(), key) {
			return fd
		}
	}
	return nil
}
