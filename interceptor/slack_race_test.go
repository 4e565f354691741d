// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package interceptor_test

// slack is more than what the race detector makes calls allocate: pools then lose a quarter of what they are given.
const slack = 4
