// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// Ends are what may end a call beside the ends of its attempts.
type Ends struct {
	Succeed   int           // the number of the first attempt that is answered with OK; 0: none is
	Committed bool          // the application sees headers of the first attempt before it fails
	Crowded   bool          // as many calls wait as may
	Off       bool          // the mode is OFF
	Cancel    time.Duration // after so long the caller cancels the call; 0: never
	Close     time.Duration // after so long the connection is closed; 0: never
}

// stop is when the call is stopped and why; Never if it is not.
func (e *Ends) stop(limit time.Duration) (at time.Duration, why policy.Reason) {
	at = attempts.Never
	for _, end := range []struct {
		at  time.Duration
		why policy.Reason
	}{{limit, policy.ReasonDeadlineExceeded}, {e.Cancel, policy.ReasonCancelled}, {e.Close, policy.ReasonClosed}} {
		if end.at > 0 && end.at < at {
			at, why = end.at, end.why
		}
	}
	return at, why
}

// stopped is what gRPC says of attempts that run when a call is stopped.
var stopped = map[policy.Reason]codes.Code{
	policy.ReasonDeadlineExceeded: codes.DeadlineExceeded, policy.ReasonCancelled: codes.Canceled, policy.ReasonClosed: codes.Canceled,
}

// result is how attempt n ends, if the others fail.
func (e *Ends) result(n int, failed attempts.Result) attempts.Result {
	if e.Succeed > 0 && n >= e.Succeed {
		return attempts.Result{}
	}
	return failed
}

// restrict has what the engine asks say no.
func (e *Ends) restrict(s *attempts.Settings) {
	if e.Crowded {
		s.Slots = full{}
	}
	if f, ok := s.Facts.(facts); ok && e.Off {
		f.off = true
		s.Facts = f
	}
}

// full implements [attempts.Slots]: others have them all.
type full struct{ slots }

func (full) Enter() bool { return false }

// text says what ends the call, as the end of a sentence.
func (e *Ends) text() string {
	var b strings.Builder
	switch {
	case e.Succeed == 1:
		b.WriteString(", but that every attempt is answered with OK")
	case e.Succeed > 1:
		fmt.Fprintf(&b, ", up to attempt %d, which is answered with OK", e.Succeed)
	}
	if e.Committed {
		b.WriteString(", and the application sees headers of the first before that")
	}
	if e.Crowded {
		b.WriteString(", and as many calls wait as may")
	}
	if e.Off {
		b.WriteString(", and the mode is OFF")
	}
	if e.Cancel > 0 {
		fmt.Fprintf(&b, ", and the caller cancels the call after %v", e.Cancel)
	}
	if e.Close > 0 {
		fmt.Fprintf(&b, ", and the connection is closed after %v", e.Close)
	}
	return b.String()
}
