// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"time"
)

// Kind says what an extra attempt follows, which decides its cost.
type Kind uint8

// The kinds. The costs are those of [Ratio]; a [Throttle] does not look at the kind.
const (
	// AfterFailure follows a failure that was reported: cost 1.
	AfterFailure Kind = iota
	// AfterTimeout follows an attempt timeout. The earlier attempt may still be running, so that
	// the server works on two: the dearest kind, cost 5 unless set otherwise.
	AfterTimeout
)

// String is "failure" or "timeout", the words that metrics and logs use.
func (k Kind) String() string {
	switch k {
	case AfterFailure:
		return "failure"
	case AfterTimeout:
		return "timeout"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// Permit is the right to send one extra attempt, from [Budget.Withdraw]. Exactly one of
// [Budget.Return], [Budget.Refund] or nothing follows, at the budget that gave it. The fields are
// exported for other implementations of [Budget]; a caller leaves them as they are.
type Permit struct {
	Kind Kind
	At   time.Duration // the time that it was charged to
}
