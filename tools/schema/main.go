// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command schema is a plugin for buf that writes policy.json: the JSON Schema with which editors complete and check policy
// files. `make generate` runs it.
//
// General plugins for JSON Schemas describe the input of protojson. Policy files differ: enum values without prefix and in
// any case, status codes also as numbers, one form of durations, no snake case.
package main

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	draft = "http://json-schema.org/draft-07/schema#" // the newest draft that every editor knows
	home  = "https://raw.githubusercontent.com/stagger-go/stagger/main/proto/stagger/policy/v1/policy.json"
)

func main() {
	protogen.Options{}.Run(func(p *protogen.Plugin) error {
		p.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
		for _, f := range p.Files {
			if !f.Generate {
				continue
			}
			for _, m := range f.Messages {
				if m.Desc.FullName() != "stagger.policy.v1.PolicyFile" {
					continue
				}
				if err := write(p.NewGeneratedFile("policy.json", f.GoImportPath), m); err != nil {
					return fmt.Errorf("%s: %w", f.Desc.Path(), err)
				}
			}
		}
		return nil
	})
}

// write writes the schema of a policy file to g.
func write(g *protogen.GeneratedFile, m *protogen.Message) error {
	w := writer{rules: rulesByName(), applied: map[protoreflect.FullName]bool{}}
	s, err := w.message(m)
	if err != nil {
		return err
	}
	for name := range w.rules {
		if !w.applied[name] {
			return fmt.Errorf("there is a rule for %s, which is not a field or message", name)
		}
	}
	s.Schema, s.ID, s.Title = draft, home, "A policy file of stagger"
	s.Comment = "Generated from " + m.Desc.ParentFile().Path() + " by `make generate`; do not edit."
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = g.Write(append(text, '\n'))
	return err
}
