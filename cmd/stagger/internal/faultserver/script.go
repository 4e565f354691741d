// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"maps"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// script has the scripts of some methods; the zero script has none.
type script struct {
	steps  map[string][]testserver.Step // by the pattern of the methods
	queues map[string]queue             // by name
}

// parse reads a script file in YAML or JSON, or a request with the same content. The error is a [document.Error] with
// all that is wrong. The steps are for a server with the queues of before; with appending, they follow those of before.
func parse(file string, data []byte, known *registry, before script, appending bool) (script, error) {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{Name: "script file", Key: "scripts"})
	if root == nil {
		return script{}, report.Err()
	}
	decoder := document.Decoder{
		Report: report,
		Custom: func(field string, n *document.Node, fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
			if fd.Message() == nil || fd.Message().FullName() != "google.protobuf.Any" {
				return protoreflect.Value{}, false
			}
			return readAny(report, known, field, n), true
		},
	}
	var decoded faultserverv1.ScriptFile
	decoder.Decode("", root, decoded.ProtoReflect())
	if err := report.Err(); err != nil {
		return script{}, err
	}
	b := builder{report: report, known: known, queues: maps.Clone(before.queues)}
	if b.queues == nil {
		b.queues = map[string]queue{}
	}
	if !appending {
		before.steps = nil
	}
	steps := b.build(&decoded, before.steps)
	return script{steps, b.queues}, report.Err()
}

// readAny reads a message of a type that the file names, and the API knows.
func readAny(report *document.Report, known *registry, field string, n *document.Node) protoreflect.Value {
	const form = `must be a message with its "@type"`
	if n.Kind != document.Object {
		report.Misfit(field, n, form)
		return protoreflect.Value{}
	}
	var message anypb.Any
	text, ok := n.JSON(report, field)
	if !ok {
		return protoreflect.Value{}
	}
	if err := (protojson.UnmarshalOptions{Resolver: known}).Unmarshal(text, &message); err != nil {
		report.Misread(field, n, "%s: %s", form, detail(err))
		return protoreflect.Value{}
	}
	return protoreflect.ValueOfMessage(message.ProtoReflect())
}
