// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

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
