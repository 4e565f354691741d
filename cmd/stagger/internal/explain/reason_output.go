// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"

	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

func showMeaning(w io.Writer, m explain.Meaning) error {
	text := terminal.StyleOf(w).Title(string(m.Reason)) + "\n"
	if m.Question != "" {
		text += "  question  " + m.Question + " No.\n"
	}
	for _, line := range [][2]string{{"means", m.Means}, {"look at", m.LookAt}, {"change", m.Change}, {"do not", m.DoNot}} {
		if line[1] != "" {
			text += fmt.Sprintf("  %-8s  %s\n", line[0], line[1])
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

func reasonNames() []string {
	reasons := policy.Reasons()
	list := make([]string, 0, len(reasons))
	for _, r := range reasons {
		list = append(list, string(r))
	}
	return list
}
