// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package budget

// End is how a call ended.
type End uint8

// The ends.
const (
	Failed    End = iota // with a status other than OK
	Succeeded            // with OK, after extra attempts were sent
	AtOnce               // with OK, and no extra attempt was sent
)
