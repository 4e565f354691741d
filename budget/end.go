// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

// End is how a call ended.
type End uint8

// The ends.
const (
	EndFailed    End = iota // with a status other than OK
	EndSucceeded            // with OK, after extra attempts were sent
	EndAtOnce               // with OK, and no extra attempt was sent
)
