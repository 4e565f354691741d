// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Mode says whether extra attempts are sent: retries, hedges and resumptions. "" means [ModeEnforce]. The values are in
// alphabetical order: the greater of two modes is the stricter.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "ENFORCE" // they are sent
	ModeObserve Mode = "OBSERVE" // they aren't sent: the first one of each call is decided on, and observers receive the decision
	ModeOff     Mode = "OFF"     // they aren't sent
)

// checkMode checks a mode and its percentage. Fields are named as in a policy file, under the given path.
func checkMode(report *document.Report, prefix string, m Mode, percent *float64) {
	checkWord(report, prefix+"mode", m, policyv1.Mode(0))
	if percent != nil {
		checkNumber(report, prefix+"percent", *percent, 0, 100, 4)
	}
}

// reach is a mode and the share of calls to which it applies.
type reach struct {
	mode    Mode
	percent float64 // of the calls; the others are off
}

func reachOf(m Mode, percent *float64) reach {
	r := reach{max(m, ModeEnforce), 100}
	if percent != nil {
		r.percent = *percent
	}
	return r
}

// and returns the reach for a call to which both apply.
func (r reach) and(other reach) reach {
	return reach{max(r.mode, other.mode), min(r.percent, other.percent)}
}

// said returns the reach as the fields of a spec.
func (r reach) said() (Mode, *float64) {
	if r.percent >= 100 {
		return r.mode, nil
	}
	return r.mode, &r.percent
}
