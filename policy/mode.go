// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Mode is what becomes of the extra attempts that policies decide on: retries, hedges and resumptions. Of two modes
// the greater is the stricter.
type Mode uint8

// The modes. 0 counts as the first.
const (
	ModeEnforce Mode = iota + 1 // they are sent
	ModeObserve                 // the first one of each call is decided on, and not sent
	ModeOff                     // none is sent
)

// String spells the mode as a policy file does.
func (m Mode) String() string { return spelling(policyv1.Mode(cmp.Or(m, ModeEnforce))) }

// checkMode checks a mode and its percentage. Fields are named as in a policy file, under the given path.
func checkMode(report *document.Report, prefix string, m Mode, percent *float64) {
	checkEnum(report, prefix+"mode", policyv1.Mode(m))
	if percent != nil {
		checkNumber(report, prefix+"percent", *percent, 0, 100, 4)
	}
}

// reach is what calls a mode holds for.
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

// and is what holds for a call that both are about.
func (r reach) and(other reach) reach {
	return reach{max(r.mode, other.mode), min(r.percent, other.percent)}
}

// Mode is what becomes of the extra attempts of the policy's calls: the stricter of what its entry and its set say.
func (p *Policy) Mode() Mode { return p.reach.mode }

// Percent is the share of the policy's calls that its mode is for, 0 to 100: the smaller of what its entry and its set
// say. The other calls are [ModeOff].
func (p *Policy) Percent() float64 { return p.reach.percent }

// Mode is what becomes of the extra attempts of all calls, whatever policy they have. Policies may be stricter.
func (s *Set) Mode() Mode { return s.reach.mode }

// Percent is the share of all calls that the mode is for, 0 to 100. Policies may have less.
func (s *Set) Percent() float64 { return s.reach.percent }
