// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
)

// enforced returns an entry as clients without modes are to have it: without a policy that stagger does not enforce.
// It stays even if it says nothing else, since it hides less specific entries from its methods. key names what was left
// out; "" if nothing was.
func (s *Set) enforced(m MethodConfig) (left MethodConfig, key, why string) {
	switch r := reachOf(s.config.Mode, s.config.Percent).and(reachOf(m.Mode, m.Percent)); {
	case r.mode > ModeEnforce:
		why = "the mode is " + r.mode.String()
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

// mode notes that a policy was left out, or is followed more often than here.
func (n *configNotes) mode(path, key, why string, r reach, m MethodConfig) {
	switch {
	case key != "":
		n.add(path+"."+key, "", "left out: "+why)
	case r.percent < 100 && (m.Retry != nil || m.Hedge != nil):
		n.add(path+".percent", strconv.FormatFloat(r.percent, 'f', -1, 64), "gRPC follows the policy in all calls")
	}
}
