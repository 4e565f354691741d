// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// Policy is a policy file that a scenario names, or what would stand in one.
type Policy struct {
	*policy.Set

	File string // as the scenario names it; "": it stands in the scenario itself
	Text string // of the file, in YAML or JSON

	changes sync.Map // a variant's set → what it makes: a change, which is read once
}

// NewPolicy reads a policy for a scenario that holds it itself. The text is that of a policy file; see [policy.Parse] for the
// error.
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
	return &Policy{Set: set, File: file, Text: string(text)}, nil
}

// change is what a variant's set makes of a policy.
type change struct {
	set *policy.Set
	err error
}

// changed is the policy with a variant's [Variant.Set].
func (p *Policy) changed(set string) (*policy.Set, error) {
	if known, ok := p.changes.Load(set); ok {
		c, _ := known.(change)
		return c.set, c.err
	}
	var c change
	c.set, c.err = p.change(set)
	p.changes.Store(set, c)
	return c.set, c.err
}

func (p *Policy) change(set string) (*policy.Set, error) {
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
	return policy.Parse("", text)
}

// setOf is the policy file that calls follow in a variant; nil for none.
func (s *Scenario) setOf(v *Variant, name string) (*policy.Set, error) {
	p := s.Policies[name]
	switch {
	case p == nil:
		return nil, nil //nolint:nilnil // calls without a policy have none
	case v.Set == "":
		return p.Set, nil
	default:
		return p.changed(v.Set)
	}
}

// decode keeps numbers as they are written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// merge changes a value as RFC 7386 says: null removes a key, an object changes the keys that it has, and everything
// else takes the place of what was there.
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

// policies reads those that a scenario names, and those that stand in it.
func (r *reader) policies(f *fields, read func(string) ([]byte, error)) map[string]*Policy {
	list := map[string]*Policy{}
	if f == nil {
		return list
	}
	if n := len(f.keys()); n > mostPolicies {
		f.Errorf(f.path, nil, "has %d policies; must be at most %d", n, mostPolicies)
		return list
	}
	for _, name := range f.keys() {
		if name == NoPolicy {
			f.wrong(name, "means one attempt; choose another name")
		}
		var p *Policy
		if f.get(name).Kind == document.Object {
			p = f.ownPolicy(name)
		} else {
			p = f.policyFile(name, read)
		}
		if p != nil {
			list[name] = p
		}
	}
	return list
}

// policyFile reads a file beside the scenario. What is wrong in it is reported as that file's.
func (f *fields) policyFile(name string, read func(string) ([]byte, error)) *Policy {
	file := f.text(name)
	if file == "" {
		return nil
	}
	data, err := read(file)
	if err != nil {
		f.wrong(name, "cannot be read: %v", err)
		return nil
	}
	p, err := ReadPolicy(file, data)
	if err != nil {
		f.failed = append(f.failed, err)
	}
	return p
}

// ownPolicy reads one that stands in the scenario.
func (f *fields) ownPolicy(name string) *Policy {
	text, ok := f.get(name).JSON(f.Report, f.under(name))
	if !ok {
		return nil
	}
	set, err := policy.Parse(f.under(name), text)
	if err != nil {
		f.reportPolicy(err, f.under(name), func(field string) string { return f.under(name) + "." + field })
		return nil
	}
	return &Policy{Set: set, Text: string(text)}
}

// reportPolicy reports what a policy's own reader says as mistakes of the scenario: under the field that at gives, if it is or
// should be there, and else under base.
func (r *reader) reportPolicy(err error, base string, at func(field string) string) {
	wrong, ok := errors.AsType[*policy.Error](err)
	if !ok {
		r.Errorf(base, nil, "%v", err)
		return
	}
	const required = "is required; " // says the scenario's report, too, of a field that is not there
	seen := map[string]bool{}        // a change is the same in each entry
	for _, d := range wrong.Diagnostics {
		field, message := at(d.Field), d.Message
		lacks, ok := strings.CutPrefix(message, required)
		switch {
		case field == "" || !ok && !r.Written(field):
			field, message = base, fmt.Sprintf("makes a policy wrong: %s: %s", d.Field, message)
		case ok:
			message = lacks
		}
		if !seen[field+message] {
			r.Errorf(field, nil, "%s", message)
		}
		seen[field+message] = true
	}
}
