// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/stagger-go/stagger/cmd/stagger/internal/pen"
	"github.com/stagger-go/stagger/policy"
)

var formats = map[string]func(io.Writer, []report) error{"text": asText, "json": asJSON, "github": asGitHub}

// Severities, and their names in GitHub's workflow commands.
const (
	mistake = "error"
	advice  = "warning"
	note    = "note"
)

// each calls say for every problem, in the order of the files, until one fails.
func each(reports []report, say func(severity string, p policy.Problem) error) error {
	for _, r := range reports {
		for _, list := range []struct {
			severity string
			problems []policy.Problem
		}{{mistake, r.mistakes}, {advice, r.advice}, {note, r.notes}} {
			for _, p := range list.problems {
				if err := say(list.severity, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func asText(w io.Writer, reports []report) error {
	colours := pen.For(w)
	labels := map[string]string{
		mistake: colours.Bad(mistake + ":"), advice: colours.Doubtful(advice + ":"), note: colours.Faint(note + ":"),
	}
	err := each(reports, func(severity string, p policy.Problem) error {
		_, err := fmt.Fprintln(w, labels[severity], p)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range reports {
		if r.set == nil {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s; %s\n", r.file, colours.Good("can be used"), count(len(r.set.Policies()))); err != nil {
			return err
		}
	}
	return nil
}

func count(policies int) string {
	if policies == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", policies)
}

// finding is a problem in JSON.
type finding struct {
	Severity string `json:"severity"` // error, warning or note
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Field    string `json:"field,omitempty"`
	Value    string `json:"value,omitempty"`
	Message  string `json:"message"`
}

func asJSON(w io.Writer, reports []report) error {
	list := []finding{}
	_ = each(reports, func(severity string, p policy.Problem) error {
		list = append(list, finding{severity, p.File, p.Line, p.Column, p.Field, p.Value, p.Message})
		return nil
	})
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// asGitHub writes workflow commands, which mark the lines in a pull request.
func asGitHub(w io.Writer, reports []report) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	return each(reports, func(severity string, p policy.Problem) error {
		if severity == note {
			severity = "notice"
		}
		text := p
		text.File, text.Line, text.Column = "", 0, 0
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d::%s\n",
			severity, property.Replace(p.File), max(p.Line, 1), max(p.Column, 1), data.Replace(text.String()))
		return err
	})
}
