// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package document

import "syscall"

// atOnce lets a pipe be opened that nobody writes to, instead of waiting for a writer.
const atOnce = syscall.O_NONBLOCK
