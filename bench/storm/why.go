// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Why stagger is worse in a figure than a peer, by what kind of storm it is.

// lasts reports whether the trouble was more than the retries of most calls can outlast.
func lasts(r result) bool { return r.success < 0.5 }

const takes = "attempts that it sends beside slow ones take some of the servers' work from other calls"

func whyFewer(s storm, _ result) string {
	if s.overloads() {
		return takes
	}
	return "its budget ends the retries of an outage that lasts, before the servers are back"
}

func whyLater(s storm, _ result) string {
	if s.overloads() {
		return takes + ", and stand in the queue when it is over; who sends none, or refuses calls, has less before it"
	}
	return "retries that still wait when the trouble is over come on top of the calls"
}

func whyMore(_ storm, ours result) string {
	if lasts(ours) {
		return "its budget lets a tenth of the calls be retried for as long as it lasts; throttling and breaker end that"
	}
	return "full jitter waits less on average, so that more retries come while the trouble lasts"
}

func whyHigher(s storm, _ result) string {
	if s.overloads() {
		return takes
	}
	return "full jitter may draw a wait of nearly nothing, so that some retries come at once"
}

func whySlower(s storm, ours result) string {
	switch {
	case s.overloads():
		return takes
	case lasts(ours):
		return "calls that are retried in vain fail later than those that are not"
	case s.attemptTimeout > 0:
		return "it waits out a backoff after the attempt timeout before it sends the next attempt; a hedge is sent at once"
	default:
		return "full jitter may draw several short waits, so that some calls need more retries than with waits of at least 80 %"
	}
}
