// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"sync"
)

// faults are the errors found: the first of each kind, and their number.
type faults struct {
	mu    sync.Mutex
	first map[string]string
	count map[string]int
	kinds []string // in the order in which they came
}

func newFaults() *faults { return &faults{first: map[string]string{}, count: map[string]int{}} }

func (f *faults) add(kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[kind]++; f.count[kind] == 1 {
		f.kinds = append(f.kinds, kind)
		f.first[kind] = fmt.Sprintf(format, args...)
	}
}

// lines returns one line for each kind.
func (f *faults) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := make([]string, len(f.kinds))
	for i, kind := range f.kinds {
		lines[i] = fmt.Sprintf("%s, %d times; first: %s", kind, f.count[kind], f.first[kind])
	}
	return lines
}
