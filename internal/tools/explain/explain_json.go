// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import "github.com/stagger-go/stagger/policy"

// MethodJSON is the effect on one method in JSON.
type MethodJSON struct {
	Method   string    `json:"method"`
	Strategy Strategy  `json:"strategy"`
	Attempts int       `json:"attempts"`
	Safe     bool      `json:"safe"`
	Because  string    `json:"because"`
	Budget   string    `json:"budget,omitempty"`
	Pool     *PoolJSON `json:"pool,omitempty"`    // from which the budget leases its
	Mode     string    `json:"mode,omitempty"`    // of the file; none without a policy
	Percent  *float64  `json:"percent,omitempty"` // of the calls for which the mode holds, if not all
	Entry    string    `json:"entry"`
}

// PoolJSON is a pool in JSON, as a policy file describes it.
type PoolJSON struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"perSecond"`
}

// MethodJSON returns the effect on a method in JSON.
func (e *Effect) MethodJSON(method string) MethodJSON {
	m := MethodJSON{
		Method: method, Strategy: e.Strategy, Attempts: e.Attempts, Safe: e.Safe, Because: e.Why(), Budget: e.Budget, Entry: e.Entry,
	}
	if e.Pool != "" {
		m.Pool = &PoolJSON{e.Pool, e.PoolRate}
	}
	if p := e.Policy; p != nil {
		m.Mode = string(p.Mode())
		if percent := p.Percent(); percent < 100 {
			m.Percent = &percent
		}
	}
	return m
}

// AnswerJSON is the explanation of one method in JSON. Durations are as Go writes them: "1.5s".
type AnswerJSON struct {
	MethodJSON

	Transparent string              `json:"transparentRetry,omitempty"` // of non-idempotent methods
	Refused     string              `json:"refusedRetry,omitempty"`     // likewise
	Settings    map[string][]string `json:"settings,omitempty"`         // what the text shows of the entry
	Deadline    string              `json:"deadline,omitempty"`
	If          string              `json:"if,omitempty"`
	Wait        string              `json:"connectionWait,omitempty"` // the longest; with Down
	Events      []EventJSON         `json:"events"`
	End         *EndJSON            `json:"end,omitempty"` // none if the call does not end
}

// EventJSON is an attempt that has failed or is slow, and what follows.
type EventJSON struct {
	Attempt int           `json:"attempt"`
	Sent    string        `json:"sent"`
	At      string        `json:"at"`
	Slow    bool          `json:"slow"`
	Retry   bool          `json:"retry"`
	Wait    string        `json:"wait"`
	Least   string        `json:"least,omitempty"`
	Longest string        `json:"longest,omitempty"`
	Reason  policy.Reason `json:"reason"`
}

// EndJSON is how the call ends.
type EndJSON struct {
	At       string        `json:"at"`
	Code     string        `json:"code"`
	Reason   policy.Reason `json:"reason"`
	Attempts int           `json:"attempts"`
	Hedges   int           `json:"hedges"`
}

// JSON is the explanation in JSON.
func (a *Answer) JSON() AnswerJSON {
	whole := AnswerJSON{MethodJSON: a.MethodJSON(a.Method), Events: []EventJSON{}}
	if !a.Safe {
		whole.Transparent, whole.Refused = "ALLOW", "ALLOW"
		if a.Denied {
			whole.Transparent = "DENY"
		}
		if a.Ignores {
			whole.Refused = "DENY"
		}
	}
	if a.Policy == nil {
		return whole
	}
	whole.If = a.Scenario()
	name := ""
	for _, s := range settings(a.Policy) {
		if whole.Settings == nil {
			whole.Settings = map[string][]string{}
		}
		if s.Name != "" { // else it belongs to the one before
			name = s.Name
		}
		whole.Settings[name] = append(whole.Settings[name], s.Value)
	}
	if a.Limit > 0 {
		whole.Deadline = a.Limit.String()
	}
	if a.Down {
		whole.Wait = a.ConnectionWait().String()
	}
	for _, e := range a.Events {
		one := EventJSON{
			Attempt: e.Attempt, Sent: e.Sent.String(), At: e.At.String(), Slow: e.Slow,
			Retry: e.Decision.Retry, Wait: e.Decision.Delay.String(), Reason: e.Decision.Reason,
		}
		if e.Waits {
			one.Least, one.Longest = e.Least.String(), e.Longest.String()
		}
		whole.Events = append(whole.Events, one)
	}
	if !a.Never {
		whole.End = &EndJSON{a.At.String(), a.EndCode(), a.End.Reason, a.End.Attempts, a.End.Hedges}
	}
	return whole
}
