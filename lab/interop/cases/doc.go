// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package cases runs gRPC's own interop cases through a Retrier: it passes, with every kind of policy, the cases that bare
// gRPC passes. The cases need no installed software, so they are ordinary tests. They are in this module because gRPC's
// package of cases needs Envoy's and Google's types, which users of the core module should not have to load.
package cases
