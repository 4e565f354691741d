// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"io"
	"strings"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

var formats = map[string]func(io.Writer, []report) error{"text": asText, "json": asJSON, "github": asGitHub}

// quiet leaves out the files of which nothing has to be said.
func quiet(reports []report) []report {
	for i := range reports {
		reports[i].set = nil
	}
	return reports
}

// all returns the diagnostics in the order of the files; never nil, so that JSON has a list.
func all(reports []report) []policy.Diagnostic {
	list := []policy.Diagnostic{}
	for _, r := range reports {
		list = append(list, r.diagnostics...)
	}
	return list
}

func asText(w io.Writer, reports []report) error {
	colours := terminal.StyleOf(w)
	paint := map[string]func(string) string{
		document.SeverityError: colours.Error, document.SeverityWarning: colours.Warning, document.SeverityNote: colours.Faint,
	}
	for _, d := range all(reports) {
		if _, err := fmt.Fprintln(w, paint[d.Severity](d.Severity+":"), d); err != nil {
			return err
		}
	}
	for _, r := range reports {
		if r.set == nil {
			continue
		}
		says := colours.Success("can be used") + "; " + count(len(r.set.Policies()))
		if len(r.set.Policies()) == 0 {
			says = colours.Warning("valid, but without policies: nothing is retried")
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", cli.Name(r.file), says); err != nil {
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

func asJSON(w io.Writer, reports []report) error { return cli.WriteJSON(w, all(reports)) }

// asGitHub writes workflow commands, which mark lines in a pull request.
func asGitHub(w io.Writer, reports []report) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, d := range all(reports) {
		severity := d.Severity
		if d.Severity == document.SeverityNote {
			severity = "notice"
		}
		text := d
		text.File, text.Line, text.Column = "", 0, 0
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d::%s\n",
			severity, property.Replace(document.Printable(d.File)), max(d.Line, 1), max(d.Column, 1), data.Replace(text.String()))
		if err != nil {
			return err
		}
	}
	return nil
}
