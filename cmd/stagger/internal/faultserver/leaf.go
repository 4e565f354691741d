// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
)

// leaf reads a value by protobuf's own rules for JSON; m is a message that has it.
func (r *reader) leaf(path string, n *yaml.Node, fd protoreflect.FieldDescriptor, m protoreflect.Message) protoreflect.Value {
	r.places[path] = n
	var b bytes.Buffer
	if !r.writeJSON(&b, path, n, 0) {
		return protoreflect.Value{}
	}
	if b.String() == "null" && fd.FullName() != "stagger.faultserver.v1.Message.json" {
		r.wrong(path, n, "has no value: must be %s, or be left out", form(fd))
		return protoreflect.Value{}
	}
	text := fmt.Sprintf("{%q: %s}", fd.JSONName(), b.String())
	if fd.IsList() {
		text = fmt.Sprintf("{%q: [%s]}", fd.JSONName(), b.String())
	}
	whole := m.New()
	if err := (protojson.UnmarshalOptions{Resolver: r.api}).Unmarshal([]byte(text), whole.Interface()); err != nil {
		r.wrong(path, n, "%s", want(fd, n, err))
		return protoreflect.Value{}
	}
	if fd.IsList() {
		return whole.Get(fd).List().Get(0)
	}
	return whole.Get(fd)
}

// want says what would be right.
func want(fd protoreflect.FieldDescriptor, n *yaml.Node, err error) string {
	if fd.Message() != nil {
		switch fd.Message().FullName() {
		case "google.protobuf.Duration":
			if d, err := time.ParseDuration(n.Value); err == nil {
				return `must be in seconds: "` + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + `s"`
			}
		case "google.protobuf.Any":
			return "must be " + form(fd) + ": " + control.Detail(err)
		}
	}
	return "must be " + form(fd)
}

// form is how a field is written.
func form(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return "a text, in quotes"
	case protoreflect.Uint32Kind:
		return "a whole number from 0 to 4294967295"
	case protoreflect.Uint64Kind:
		return "a whole number from 0 to 18446744073709551615"
	case protoreflect.DoubleKind:
		return "a number"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.BytesKind:
		return "bytes in base64, in quotes"
	case protoreflect.MessageKind:
		return messageForm(fd.Message().FullName())
	default:
		return "a value" // there is no such field today
	}
}

func messageForm(name protoreflect.FullName) string {
	switch name {
	case "google.protobuf.Duration":
		return `seconds with an "s", such as "0.05s"`
	case "google.protobuf.Any":
		return `a message with its "@type"`
	case "google.protobuf.Empty":
		return "{}"
	default:
		return "a value" // google.protobuf.Value
	}
}
