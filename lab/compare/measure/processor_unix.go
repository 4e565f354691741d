// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package measure

import (
	"syscall"
	"time"
)

// Processor asks the system, which counts what garbage collection takes too.
func (process) Processor() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
