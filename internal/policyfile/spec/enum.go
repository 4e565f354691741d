// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import "github.com/stagger-go/stagger/backoff"

// The words of a policy file, by kind. "" means the default.
var (
	idempotencies   = []string{"ASSUME", "DECLARED", "NONE"}
	modes           = []string{"ENFORCE", "OBSERVE", "OFF"}
	chains          = []string{"ALLOW", "SUPPRESS"}
	growths         = []backoff.Growth{backoff.GrowthExponential, backoff.GrowthLinear, backoff.GrowthFixed}
	attemptTimeouts = []string{"RETRY", "HEDGE"}
	firstRetries    = []string{"BACKOFF", "AT_ONCE"}
	admissions      = []string{"NONE", "REFUSE"}
	scopes          = []string{"PROCESS", "TARGET", "SERVICE"}
	jitters         = []backoff.Jitter{
		backoff.JitterNone, backoff.JitterFull, backoff.JitterEqual, backoff.JitterDecorrelated, backoff.JitterProportional,
	}
)
