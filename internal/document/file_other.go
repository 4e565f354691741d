// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package document

// atOnce is 0: only Unix has pipes that are files.
const atOnce = 0
