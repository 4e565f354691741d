// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
)

const (
	// maxTargets bounds the targets that have labels of their own: a program may connect to any number.
	maxTargets = 1000
	// otherTarget is the label of all further targets.
	otherTarget = "other"
)

// targetLabels has the labels of the targets of one Retrier. All its instruments share them, so that a target has
// the same label in each.
type targetLabels struct {
	convert func(target string) string // of [Target], or nil

	mu     sync.Mutex // guards all below
	labels map[string]bool
	full   bool // a target has found no place
}

// of returns the label of a target; "" stays "", because it means all targets.
func (t *targetLabels) of(target string) string {
	if target == "" {
		return ""
	}
	label := target
	if t.convert != nil {
		label = t.convert(target)
	}
	label, filled := t.bounded(valid(label))
	if filled {
		otel.Handle(fmt.Errorf("otelstagger: a Retrier has more than %d targets; the label target of further ones is %q; "+
			"otelstagger.Target can give several targets one label", maxTargets, otherTarget))
	}
	return label
}

// bounded returns the label if it is among the first, and otherwise [otherTarget]. It reports the first one that isn't.
func (t *targetLabels) bounded(label string) (bounded string, filled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.labels[label]:
		return label, false
	case len(t.labels) < maxTargets:
		if t.labels == nil {
			t.labels = map[string]bool{}
		}
		t.labels[label] = true
		return label, false
	default:
		filled, t.full = !t.full, true
		return otherTarget, filled
	}
}
