// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// Policy is a policy file, or a policy within the scenario.
type Policy struct {
	*decision.Set

	File string // as the scenario names it; "": the scenario contains the policy
	Text string // of the file, in YAML or JSON
}

// NewPolicy reads a policy that a scenario contains. The text is that of a policy file; see [policy.Parse] for the error.
func NewPolicy(text string) (*Policy, error) {
	p, err := ReadPolicy("policy", []byte(text))
	if err == nil {
		p.File = ""
	}
	return p, err
}

// ReadPolicy reads the text of a policy file that a scenario names.
func ReadPolicy(file string, text []byte) (*Policy, error) {
	set, err := policy.Parse(file, text)
	if err != nil {
		return nil, err
	}
	return &Policy{Set: decision.Compile(set), File: file, Text: string(text)}, nil
}

// changed returns the policy with a variant's [Variant.Set] applied.
func (p *Policy) changed(set string) (*decision.Set, error) {
	var patch map[string]any
	if err := decode([]byte(set), &patch); err != nil {
		return nil, fmt.Errorf("sim: set of a variant: %q: must be a JSON object: %w", set, err)
	}
	report := document.NewReport(p.File)
	root := document.Parse(report, []byte(p.Text), document.Format{Name: "policy file"})
	if root == nil {
		return nil, report.Err()
	}
	text, _ := root.JSON(report, "")
	var file map[string]any
	if err := errors.Join(report.Err(), decode(text, &file)); err != nil {
		return nil, err
	}
	entries, _ := file["methodConfig"].([]any)
	for i := range entries {
		entries[i] = merge(entries[i], patch)
	}
	text, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	changed, err := policy.Parse("", text)
	if err != nil {
		return nil, err
	}
	return decision.Compile(changed), nil
}

// setOf returns the policy file of calls in a variant, or nil.
func (s *Scenario) setOf(v *Variant, name string) (*decision.Set, error) {
	p := s.Policies[name]
	switch {
	case p == nil:
		return nil, nil //nolint:nilnil // no policy
	case v.Set == "":
		return p.Set, nil
	default:
		return p.changed(v.Set)
	}
}

// decode decodes JSON, with numbers as written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// merge applies a patch as RFC 7386 defines: null removes a key, an object changes the keys that it has, and any other value
// replaces the old one.
func merge(value, patch any) any {
	keys, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	into, ok := value.(map[string]any)
	if !ok {
		into = map[string]any{}
	}
	for key, change := range keys {
		if change == nil {
			delete(into, key)
		} else {
			into[key] = merge(into[key], change)
		}
	}
	return into
}

// policies reads or writes the scenario's policies, both files and contained ones.
func (c *codec) policies(to *map[string]*Policy, f *document.Fields) {
	if !f.Writing {
		*to = map[string]*Policy{}
	}
	f.Object("policies", func(f *document.Fields) {
		if f.Writing {
			for _, name := range slices.Sorted(maps.Keys(*to)) {
				if p := (*to)[name]; p.File != "" {
					f.Text(name, &p.File)
				} else if c.text(f, name, &p.Text, ""); p.Text == "" {
					c.failed = append(c.failed, fmt.Errorf("sim: policy %q cannot be written: it has no text", name))
				}
			}
			return
		}
		if n := len(f.Keys()); n > mostPolicies {
			f.Errorf(f.Path, nil, "has %d policies; must be at most %d", n, mostPolicies)
		}
		for _, name := range f.Keys() {
			if name == NoPolicy {
				f.Wrong(name, "means one attempt; choose another name")
			}
			if p := c.policy(f, name); p != nil {
				(*to)[name] = p
			}
		}
	})
}

// policy reads one that the scenario contains, or a file in the same folder. Errors in a file are reported as that file's.
func (c *codec) policy(f *document.Fields, name string) *Policy {
	if n := f.Get(name); n.Kind == document.Object {
		text, ok := n.JSON(f.Report, f.Under(name))
		if !ok {
			return nil
		}
		set, err := policy.Parse(f.Under(name), text)
		if err != nil {
			c.reportPolicy(err, f.Under(name), func(field string) string { return f.Under(name) + "." + field })
			return nil
		}
		return &Policy{Set: decision.Compile(set), Text: string(text)}
	}
	var file string
	if f.Text(name, &file); file == "" {
		return nil
	}
	data, err := c.read(file)
	if err != nil {
		f.Wrong(name, "cannot be read: %v", err)
		return nil
	}
	p, err := ReadPolicy(file, data)
	if err != nil {
		c.failed = append(c.failed, err)
	}
	return p
}

// reportPolicy reports the errors of a policy's reader as errors of the scenario: at the field that at returns if it is or
// should be present, else at base.
func (c *codec) reportPolicy(err error, base string, at func(field string) string) {
	wrong, ok := errors.AsType[*policy.Error](err)
	if !ok {
		c.Errorf(base, nil, "%v", err)
		return
	}
	const required = "is required; " // the report also adds this
	seen := map[string]bool{}        // a change is the same for each entry
	for _, d := range wrong.Diagnostics {
		field, message := at(d.Field), d.Message
		lacks, ok := strings.CutPrefix(message, required)
		switch {
		case field == "" || !ok && !c.Written(field):
			field, message = base, fmt.Sprintf("makes a policy wrong: %s: %s", d.Field, message)
		case ok:
			message = lacks
		}
		if !seen[field+message] {
			c.Errorf(field, nil, "%s", message)
		}
		seen[field+message] = true
	}
}
