// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

// LastPick is what a Retrier asks for a call.
var LastPick = builder{}.LastPick
