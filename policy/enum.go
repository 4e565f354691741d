// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/document"
)

// The words of a policy file, by kind. "" means the default.
var (
	idempotencies = []string{"ASSUME", "DECLARED", "NONE"}
	modes         = []Mode{ModeEnforce, ModeObserve, ModeOff}
	criticalities = []Criticality{CriticalitySheddable, CriticalityDefault, CriticalityCritical}
	chains        = []string{"ALLOW", "ONCE", "SUPPRESS"}
	jitters       = []string{"NONE", "FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL"}
	scopes        = []string{"PROCESS", "TARGET", "SERVICE"}
)

// checkWord refuses other words. "" means the default.
func checkWord[T ~string](report *document.Report, field string, said T, words ...T) {
	if said != "" && !slices.Contains(words, said) {
		report.Errorf(field, string(said), "must be %s", document.OneOf(document.Strings(words...)))
	}
}

// Criticality decides which calls are refused first when not all can be answered in time. "" means [CriticalityDefault].
type Criticality string

// The criticalities, in the order in which calls are refused.
const (
	CriticalitySheddable Criticality = "SHEDDABLE" // refused when half as many attempts run as can be answered in time
	CriticalityDefault   Criticality = "DEFAULT"   // refused when as many attempts run as can be answered in time
	CriticalityCritical  Criticality = "CRITICAL"  // refused when as many attempts of critical calls run as can be answered in time
)
