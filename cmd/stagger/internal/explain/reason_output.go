// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"io"

	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

func showMeaning(w io.Writer, m explain.Meaning) error {
	text := terminal.StyleOf(w).Title(string(m.Reason)) + "\n"
	if m.Refusal != "" {
		text += "  question  " + m.Refusal + " No.\n"
	}
	_, err := io.WriteString(w, text+"  means     "+m.Means+"\n  to do     "+m.Remedy+"\n")
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
