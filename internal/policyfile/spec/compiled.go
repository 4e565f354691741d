// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "github.com/stagger-go/stagger/internal/policyfile/document"

// Compiled is a checked policy, with defaults, and in a set with the idempotency that follows from its name and the file. It must not be
// changed.
type Compiled struct {
	Policy

	// Extra has the settings of extra attempts: those of the policy's retries; of a hedging policy, what hedges share with retries; without
	// either, one attempt.
	Extra Retry
}

// Compile returns a checked policy with defaults.
func Compile(p Policy) Compiled {
	p = p.WithDefaults()
	c := Compiled{Policy: p, Extra: Retry{MaxAttempts: 1}}
	switch {
	case p.Retry != nil:
		c.Extra = *p.Retry
	case p.Hedge != nil:
		c.Extra = Retry{MaxAttempts: p.Hedge.MaxAttempts, RetryableStatusCodes: p.Hedge.NonFatalStatusCodes, Budget: p.Hedge.Budget}
	}
	return c
}

// Quantile returns the hedgingQuantile, or 0.
func (c *Compiled) Quantile() float64 {
	if c.Hedge == nil {
		return 0
	}
	return c.Hedge.Quantile
}

// CompiledSet is a checked config, with defaults, and the places of its keys in the file. A place is a diagnostic without a message; it is
// zero if the file does not have the key. It must not be changed.
type CompiledSet struct {
	Config

	ChannelAt   map[string]document.Diagnostic // of each key that a Retrier gives to connections
	ElsewhereAt document.Diagnostic            // of the first entry that names stagger_retry_elsewhere
	NamesAt     map[string]document.Diagnostic // of each name of a method, a service or everything, as in MethodConfig.Names: a warning
	AdmissionAt []document.Diagnostic          // of each entry with admission REFUSE
}

// CompileSet returns a checked config with defaults. report knows where the file has its keys.
func CompileSet(c Config, report *document.Report) CompiledSet {
	s := CompiledSet{
		Config:      c.WithDefaults(),
		ChannelAt:   map[string]document.Diagnostic{},
		ElsewhereAt: report.Locate(document.Diagnostic{Severity: document.SeverityError, Field: c.Elsewhere()}),
		NamesAt:     map[string]document.Diagnostic{},
	}
	for _, key := range []string{BalancingKey, BalancingPolicyKey, HealthKey} {
		s.ChannelAt[key] = report.Locate(document.Diagnostic{Severity: document.SeverityError, Field: key})
	}
	for i, m := range c.Methods {
		entry := document.Item("methodConfig", i)
		if m.Admission == "REFUSE" {
			at := document.Diagnostic{Severity: document.SeverityError, Field: entry + ".admission", Value: m.Admission}
			s.AdmissionAt = append(s.AdmissionAt, report.Locate(at))
		}
		for j, name := range m.Names {
			at := document.Diagnostic{Severity: document.SeverityWarning, Field: document.Item(entry+".name", j)}
			s.NamesAt[name] = report.Locate(at)
		}
	}
	return s
}
