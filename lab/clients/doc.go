// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients puts stagger's dial options into real client libraries and counts what their servers see. Its tests
// run with `make clients`; -write makes the table of docs/clients.md of what was counted.
package clients
