// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/document"
)

// The words of a policy file, by kind. "" means the default.
var (
	idempotencies   = []string{"ASSUME", "DECLARED", "NONE"}
	modes           = []Mode{ModeEnforce, ModeObserve, ModeOff} // each stricter than the one before
	chains          = []string{"ALLOW", "SUPPRESS"}
	growths         = []string{"EXPONENTIAL", "LINEAR", "FIXED"}
	attemptTimeouts = []string{"RETRY", "HEDGE"}
	firstRetries    = []string{"BACKOFF", "AT_ONCE"}
	admissions      = []string{"NONE", "REFUSE"}
	jitters         = []string{"NONE", "FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL"}
	scopes          = []string{"PROCESS", "TARGET", "SERVICE"}
)

// checkWord refuses other words. "" means the default.
func checkWord[T ~string](report *document.Report, field string, said T, words ...T) {
	if said != "" && !slices.Contains(words, said) {
		report.Errorf(field, string(said), "must be %s", document.OneOf(document.Strings(words...)))
	}
}
