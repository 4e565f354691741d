// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package control puts a control service beside a [testserver.Server], so that tests in any language can
// tell it what to fail, and see what it has seen: stagger.faultserver.v1.FaultService, with gRPC's health
// and reflection services.
package control
