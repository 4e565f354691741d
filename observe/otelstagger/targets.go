// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
)

const (
	// maxLabels bounds the targets that have labels of their own, and the services and backends: a program may call any number.
	maxLabels = 1000
	// otherLabel is the label of all further ones.
	otherLabel = "other"
)

// boundedLabels has the labels of the targets, services or backends of one Retrier. All its instruments share them, so that a target has
// the same label in each.
type boundedLabels struct {
	what    string                     // the name of the label
	remedy  string                     // what the program can do if there are too many; "": nothing
	convert func(target string) string // of [Target], or nil

	mu     sync.Mutex // guards all below
	labels map[string]bool
	full   bool // a target has found no place
}

// of returns the label of a target; "" stays "", because it means all targets.
func (t *boundedLabels) of(target string) string {
	if target == "" {
		return ""
	}
	label := target
	if t.convert != nil {
		label = t.convert(target)
	}
	label, filled := t.bounded(valid(label))
	if filled {
		otel.Handle(fmt.Errorf("otelstagger: a Retrier has more than %d %[2]ss; the label %[2]s of further ones is %[3]q%[4]s",
			maxLabels, t.what, otherLabel, t.remedy))
	}
	return label
}

// bounded returns the label if it is among the first, and otherwise [otherLabel]. It reports the first one that isn't.
func (t *boundedLabels) bounded(label string) (bounded string, filled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.labels[label]:
		return label, false
	case len(t.labels) < maxLabels:
		if t.labels == nil {
			t.labels = map[string]bool{}
		}
		t.labels[label] = true
		return label, false
	default:
		filled, t.full = !t.full, true
		return otherLabel, filled
	}
}
