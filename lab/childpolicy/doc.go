// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package childpolicy tests package elsewhere around weighted_round_robin. It is in this module because that policy needs
// Envoy's types, which users of the core module should not have to load.
package childpolicy
