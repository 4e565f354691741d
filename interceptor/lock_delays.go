// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build delays

package interceptor

import (
	"math/rand/v2"
	"runtime"
	"sync"
)

type lock struct{ sync.Mutex }

func (l *lock) Lock() {
	letOthersRun()
	l.Mutex.Lock()
}

func (l *lock) Unlock() {
	l.Mutex.Unlock()
	letOthersRun()
}

// letOthersRun is no sleep: tests in virtual time expect exact times.
func letOthersRun() {
	if rand.IntN(3) == 0 {
		for range rand.IntN(100) {
			runtime.Gosched()
		}
	}
}
