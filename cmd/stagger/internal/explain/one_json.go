// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/policy"
)

// answerJSON is the explanation of a method, for programs. Times are in seconds since the call's start.
type answerJSON struct {
	methodJSON

	DeadlineSeconds float64        `json:"deadlineSeconds,omitempty"` // of the whole call
	Decisions       []decisionJSON `json:"decisions"`
	End             *endJSON       `json:"end"` // null if the call does not end
	Hang            *hanging       `json:"hang,omitempty"`
}

// decisionJSON is the decision after an attempt that failed, or is slow.
type decisionJSON struct {
	Attempt        int           `json:"attempt"`
	SentSeconds    float64       `json:"sentSeconds"`
	AtSeconds      float64       `json:"atSeconds"`
	Slow           bool          `json:"slow"`
	Retry          bool          `json:"retry"`
	DelaySeconds   *float64      `json:"delaySeconds,omitempty"` // before the next attempt, for one draw of random numbers
	LeastSeconds   float64       `json:"leastSeconds,omitempty"` // the bounds of that delay
	LongestSeconds float64       `json:"longestSeconds,omitempty"`
	Reason         policy.Reason `json:"reason"`
}

// endJSON is the end of the call.
type endJSON struct {
	AtSeconds float64       `json:"atSeconds"`
	Code      string        `json:"code"`
	Reason    policy.Reason `json:"reason"`
	Attempts  int           `json:"attempts"`
	Hedges    int           `json:"hedges"`
}

func answerJSONOf(a explain.Answer, hang *hanging) answerJSON {
	all := answerJSON{
		methodJSON:      methodJSON{a.Method, a.Strategy, a.Attempts, a.Safe, a.Because, a.Budget, a.Entry},
		DeadlineSeconds: seconds(a.Limit), Decisions: []decisionJSON{}, Hang: hang,
	}
	for _, e := range a.Events {
		d := decisionJSON{
			Attempt: e.Attempt, SentSeconds: seconds(e.Sent), AtSeconds: seconds(e.At), Slow: e.Slow, Retry: e.Decision.Retry,
			LeastSeconds: seconds(e.Least), LongestSeconds: seconds(e.Longest), Reason: e.Decision.Reason,
		}
		if e.Decision.Retry || e.Decision.Announced() {
			d.DelaySeconds = new(seconds(e.Decision.Delay))
		}
		all.Decisions = append(all.Decisions, d)
	}
	if a.Policy != nil && !a.Never {
		all.End = &endJSON{seconds(a.At), a.EndCode(), a.End.Reason, a.End.Attempts, a.End.Hedges}
	}
	return all
}

// seconds returns a time in seconds, to the microsecond: random numbers make more digits, which say nothing.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
