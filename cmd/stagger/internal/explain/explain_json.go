// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"io"

	"github.com/stagger-go/stagger/policy"
)

// answerJSON is the explanation of one method in JSON. Durations are as Go writes them: "1.5s".
type answerJSON struct {
	methodJSON

	Settings map[string][]string `json:"settings,omitempty"` // what the text shows of the entry
	Deadline string              `json:"deadline,omitempty"`
	If       string              `json:"if,omitempty"`
	Events   []eventJSON         `json:"events"`
	End      *endJSON            `json:"end,omitempty"` // none if the call does not end
}

// eventJSON is an attempt that has failed or is slow, and what follows.
type eventJSON struct {
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

type endJSON struct {
	At       string        `json:"at"`
	Code     string        `json:"code"`
	Reason   policy.Reason `json:"reason"`
	Attempts int           `json:"attempts"`
	Hedges   int           `json:"hedges"`
}

func (a *answer) json(w io.Writer) error {
	whole := answerJSON{
		methodJSON: methodJSON{a.method, a.Strategy, a.Attempts, a.Safe, because(a.Effect), a.Budget, a.Entry},
		Events:     []eventJSON{},
	}
	if a.Policy == nil {
		return writeJSON(w, whole)
	}
	whole.If = scenario(*a)
	name := ""
	for _, s := range settings(a.Policy) {
		if whole.Settings == nil {
			whole.Settings = map[string][]string{}
		}
		if s.name != "" { // else it belongs to the one before
			name = s.name
		}
		whole.Settings[name] = append(whole.Settings[name], s.value)
	}
	if a.limit > 0 {
		whole.Deadline = a.limit.String()
	}
	for _, e := range a.events {
		one := eventJSON{
			Attempt: e.attempt, Sent: e.sent.String(), At: e.at.String(), Slow: e.slow,
			Retry: e.decision.Retry, Wait: e.decision.Delay.String(), Reason: e.decision.Reason,
		}
		if e.waits {
			one.Least, one.Longest = e.least.String(), e.longest.String()
		}
		whole.Events = append(whole.Events, one)
	}
	if !a.never {
		whole.End = &endJSON{a.at.String(), a.endCode(), a.end.Reason, a.end.Attempts, a.end.Hedges}
	}
	return writeJSON(w, whole)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
