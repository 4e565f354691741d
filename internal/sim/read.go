// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/policy"
)

// reader reads a scenario, and collects what is wrong with it.
type reader struct {
	file     string
	problems []policy.Diagnostic
	failed   []error // of policy files
}

func (r *reader) add(at *yaml.Node, field, value, format string, args ...any) {
	line, column := 1, 1
	if at != nil {
		line, column = at.Line, at.Column
	}
	r.problems = append(r.problems, policy.Diagnostic{
		File: r.file, Line: line, Column: column, Field: field, Value: value, Message: fmt.Sprintf(format, args...),
	})
}

// err is all that is wrong, in the order of the file; nil if nothing is.
func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b policy.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &policy.Error{Diagnostics: r.problems}
}

// parse makes the fields of a YAML text; nil if that is not possible.
func (r *reader) parse(data []byte) *fields {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	var first, second yaml.Node
	if err == nil {
		err = loader.Load(&first)
	}
	switch fault, ok := errors.AsType[*yaml.LoadError](err); {
	case errors.Is(err, io.EOF):
		r.add(nil, "", "", "is empty; a scenario has keys such as services, fleets and phases")
		return nil
	case ok:
		r.add(&yaml.Node{Line: fault.Mark.Line, Column: fault.Mark.Column}, "", "", "is not YAML: %s", fault.Message)
		return nil
	case err != nil:
		r.add(nil, "", "", "is not YAML: %v", err)
		return nil
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		r.add(nil, "", "", "has a second document, or ends badly; a scenario is one")
		return nil
	}
	return r.object("", first.Content[0])
}
