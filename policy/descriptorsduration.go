// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// duration reports a Duration that is not one, or that Go would cut.
func (o *option) duration(field string, n *node, m protoreflect.Message) {
	d, ok := m.Interface().(*durationpb.Duration)
	switch {
	case !ok:
	case !d.IsValid():
		n.raw = fmt.Sprintf("{seconds: %d, nanos: %d}", d.GetSeconds(), d.GetNanos())
		o.problems.misread(field, n, "must have nanos from 0 to 999999999, with the sign of the seconds, and at most 10,000 years")
	case d.GetSeconds() > maxSeconds || d.GetSeconds() < -maxSeconds:
		n.raw = fmt.Sprintf("{seconds: %d}", d.GetSeconds())
		o.problems.misread(field, n, "must be at most %ds, 292 years", maxSeconds)
	}
}
