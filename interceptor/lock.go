// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !delays

package interceptor

import "sync"

// lock is the lock of a call that several goroutines share. `make random` builds it with the tag delays: then it lets others run at random
// moments, so that tests meet what happens between two of its uses.
type lock = sync.Mutex
