// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"github.com/stagger-go/stagger/internal/document"
)

// The words of a policy file, by kind. "" means the default.
var (
	idempotencies   = []string{"ASSUME", "DECLARED", "NONE"}
	modes           = []string{"ENFORCE", "OBSERVE", "OFF"}
	chains          = []string{"ALLOW", "SUPPRESS"}
	growths         = []string{"EXPONENTIAL", "LINEAR", "FIXED"}
	attemptTimeouts = []string{"RETRY", "HEDGE"}
	firstRetries    = []string{"BACKOFF", "AT_ONCE"}
	admissions      = []string{"NONE", "REFUSE"}
	jitters         = []string{"NONE", "FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL"}
	scopes          = []string{"PROCESS", "TARGET", "SERVICE"}
)

// checkWord refuses other words. "" means the default.
func checkWord(report *document.Report, field, said string, words ...string) {
	if said != "" && !slices.Contains(words, said) {
		report.Errorf(field, said, "must be %s", document.OneOf(words))
	}
}
