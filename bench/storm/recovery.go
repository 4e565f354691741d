// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

// recovery is how long a client took to serve its users well again after the trouble was over.
type recovery struct {
	state outcome
	took  time.Duration // if it returned
}

type outcome int

const (
	undisturbed outcome = iota // the storm has no end to recover from
	returned
	never // within the storm
)

// recovered finds the first window after the trouble in which the calls succeed as they should.
// The calls are in order; windows that reach beyond the storm's end do not count.
func recovered(s storm, calls []call) recovery {
	over, end := s.over(), s.length()
	if over == end {
		return recovery{}
	}
	calls = calls[first(calls, over):]
	begin, i := over, 0
	for begin+window <= end {
		in := calls[i:first(calls, begin+window)]
		if n := successes(in); n > 0 && ratio(n, len(in)) >= good {
			return recovery{returned, begin - over}
		}
		// The next window that may be better begins just after the next call that failed.
		for i < len(calls) && calls[i].ok {
			i++
		}
		if i == len(calls) {
			break
		}
		begin, i = calls[i].due+1, i+1
	}
	return recovery{state: never}
}

// String is in seconds.
func (r recovery) String() string {
	switch r.state {
	case returned:
		return fmt.Sprintf("%.2f", r.took.Seconds())
	case never:
		return "never"
	default:
		return "–"
	}
}
