// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package document

import "syscall"

// atOnce opens a pipe without waiting for a writer.
const atOnce = syscall.O_NONBLOCK
