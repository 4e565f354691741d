// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients adds stagger's interceptors to real client libraries and counts the requests at their servers. `make
// clients` runs its tests; -write writes the table of results.md from the counts.
package clients
