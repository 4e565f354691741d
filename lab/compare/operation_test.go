// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"testing/synctest"
)

func TestRepeat(t *testing.T) {
	t.Parallel()
	for n := range 20 {
		for _, goroutines := range crowds {
			synctest.Test(t, func(t *testing.T) {
				count := make(chan bool, n)
				if err := repeat(func() error { count <- true; return nil }, goroutines)(n); err != nil || len(count) != n {
					t.Errorf("%d goroutines made %d operations, %v; want %d", goroutines, len(count), err, n)
				}
			})
		}
	}
	for _, goroutines := range crowds {
		if err := repeat(func() error { return errUnavailable }, goroutines)(9); !errors.Is(err, errUnavailable) {
			t.Errorf("%d goroutines: %v; want %v", goroutines, err, errUnavailable)
		}
	}
}
