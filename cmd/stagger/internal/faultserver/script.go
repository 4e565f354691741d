// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

// load reads a script file; "" is a script without steps.
func load(c *cobra.Command, file string, known *control.API) (*faultserverv1.ScriptFile, error) {
	if file == "" {
		return &faultserverv1.ScriptFile{}, nil
	}
	data, err := cli.ReadFile(c, file)
	if err != nil {
		return nil, err
	}
	return parse(cli.FileName(file), data, known)
}

// parse reads a script in YAML or JSON. The error is a [document.Error] with all that is wrong.
func parse(file string, data []byte, known *control.API) (*faultserverv1.ScriptFile, error) {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{Name: "script file", Key: "scripts"})
	if root == nil {
		return nil, report.Err()
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
	var script faultserverv1.ScriptFile
	decoder.Decode("", root, script.ProtoReflect())
	if report.ErrorCount() == 0 {
		control.Check(report, &script, known)
	}
	if err := report.Err(); err != nil {
		return nil, err
	}
	return &script, nil
}

// readAny reads a message of a type that the file names, and the API knows.
func readAny(report *document.Report, known *control.API, field string, n *document.Node) protoreflect.Value {
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
		report.Misread(field, n, "%s: %s", form, control.Detail(err))
		return protoreflect.Value{}
	}
	return protoreflect.ValueOfMessage(message.ProtoReflect())
}
