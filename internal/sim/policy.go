// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// Policy is a policy file, or a policy within the scenario.
type Policy struct {
	*methods.Set

	File string // as the scenario names it; "": the scenario contains the policy
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
	return &Policy{Set: methods.Describe(set), File: file}, nil
}

// setOf returns the policy file of calls, or nil.
func (s *Scenario) setOf(name string) *methods.Set {
	if p := s.Policies[name]; p != nil {
		return p.Set
	}
	return nil
}

// policies reads the scenario's policies, both files and contained ones.
func (c *codec) policies(to *map[string]*Policy, f *fields) {
	*to = map[string]*Policy{}
	f.Object("policies", func(f *fields) {
		if n := len(f.Keys()); n > mostPolicies {
			f.Errorf(f.path, nil, "has %d policies; must be at most %d", n, mostPolicies)
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
func (c *codec) policy(f *fields, name string) *Policy {
	if n := f.Get(name); n.Kind == document.Object {
		before := f.ErrorCount()
		text, err := json.Marshal(f.Plain(f.Under(name), n))
		if f.ErrorCount() > before {
			return nil
		}
		var set *policy.Set
		if err == nil {
			set, err = policy.Parse(f.Under(name), text)
		}
		if err != nil {
			c.reportPolicy(err, f.Under(name), func(field string) string { return f.Under(name) + "." + field })
			return nil
		}
		return &Policy{Set: methods.Describe(set)}
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
