// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package cases runs gRPC's own interop cases through a Retrier: what bare gRPC passes, it passes with every kind of
// policy. They need no installed software, so they are part of the ordinary tests. They stand here since gRPC's package
// of cases needs Envoy's and Google's types, which users of the core module should not have to load.
package cases
