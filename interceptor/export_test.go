// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

// Replayed is how many bytes streams keep for replay now.
func (r *Retrier) Replayed() int64 { return r.replayed.Load() }
