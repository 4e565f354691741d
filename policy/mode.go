// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"

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

// enforced returns an entry for clients without modes: without a policy that stagger does not enforce. The entry stays even if
// it is otherwise empty, because it hides less specific entries from its methods. key is the removed key, or "".
func (s *Set) enforced(m MethodConfig) (left MethodConfig, key, why string) {
	switch r := reachOf(s.config.Mode, s.config.Percent).and(reachOf(m.Mode, m.Percent)); {
	case r.mode > ModeEnforce:
		why = "the mode is " + string(r.mode)
	case r.percent == 0:
		why = "percent is 0"
	default:
		return m, "", ""
	}
	switch {
	case m.Retry != nil:
		key = retryKey
	case m.Hedge != nil:
		key = hedgeKey
	default:
		return m, "", ""
	}
	m.Retry, m.Hedge, m.IdempotencyKey = nil, nil, ""
	return m, key, why
}

// mode notes that a policy was removed, or applies to more calls than here.
func (n *configNotes) mode(path, key, why string, r reach, m MethodConfig) {
	switch {
	case key != "":
		n.add(path+"."+key, "", "left out: "+why)
	case r.percent < 100 && (m.Retry != nil || m.Hedge != nil):
		n.add(path+".percent", strconv.FormatFloat(r.percent, 'f', -1, 64), "gRPC follows the policy in all calls")
	}
}
