// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package document

// atOnce is for pipes that are files, which only Unix has.
const atOnce = 0
