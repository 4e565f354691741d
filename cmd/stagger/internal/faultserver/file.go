// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/cmd/stagger/internal/policyfile"
	"github.com/stagger-go/stagger/policy"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

// maxBytes is more than any script needs.
const maxBytes = 1 << 20

// load reads a script file; nil for none.
func load(c *cobra.Command, file string, known *control.API) (*faultserverv1.ScriptFile, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // no file is no script
	}
	data, err := policyfile.Read(c, file)
	if err != nil {
		return nil, err
	}
	return parse(policyfile.Name(file), data, known)
}

// parse reads a script in YAML or JSON. The error is a [policy.Error] with all that is wrong.
func parse(file string, data []byte, known *control.API) (*faultserverv1.ScriptFile, error) {
	r := &reader{file: file, api: known, places: map[string]*yaml.Node{}}
	var script faultserverv1.ScriptFile
	if root := r.document(data); root != nil {
		r.message("", root, script.ProtoReflect(), 0)
	}
	if len(r.problems) == 0 {
		r.check(&script)
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b policy.Diagnostic) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, &policy.Error{Diagnostics: r.problems}
	}
	return &script, nil
}

// document is the root of the file's tree; nil for what has been reported.
func (r *reader) document(data []byte) *yaml.Node {
	if len(data) > maxBytes {
		r.report(1, 1, "", "", "is larger than %d bytes (1 MiB)", maxBytes)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	var root, second yaml.Node
	if err == nil {
		err = loader.Load(&root)
	}
	switch {
	case errors.Is(err, io.EOF):
		r.report(1, 1, "", "", "is empty; a script file has the key scripts")
		return nil
	case err != nil:
		r.notYAML(err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		r.report(second.Line, second.Column, "", "", "a second document begins here; a script file is one")
		return nil
	case !errors.Is(err, io.EOF):
		r.notYAML(err)
		return nil
	}
	return root.Content[0]
}

func (r *reader) notYAML(err error) {
	if fault, ok := errors.AsType[*yaml.LoadError](err); ok {
		r.report(max(1, fault.Mark.Line), max(1, fault.Mark.Column), "", "", "is not YAML: %s",
			strings.TrimPrefix(fault.ContextMsg+": "+fault.Message, ": "))
		return
	}
	r.report(1, 1, "", "", "is not YAML: %v", err)
}

// check has the scripts built, and finds the places of what is wrong with them.
func (r *reader) check(script *faultserverv1.ScriptFile) {
	fault, ok := errors.AsType[*control.Error](control.Check(script, r.api))
	if !ok {
		return
	}
	for _, m := range fault.Mistakes {
		at := r.place(m.Field)
		r.report(at.Line, at.Column, m.Field, m.Value, "%s", m.Message)
	}
}

// place is where a field stands, or the nearest that it is a part of.
func (r *reader) place(field string) *yaml.Node {
	for {
		if n := r.places[field]; n != nil || field == "" {
			return n
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

func (r *reader) report(line, column int, field, value, format string, args ...any) {
	r.problems = append(r.problems, policy.Diagnostic{
		File: r.file, Line: line, Column: column, Field: field, Value: value, Message: fmt.Sprintf(format, args...),
	})
}
