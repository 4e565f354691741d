// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package simcheck holds the simulator to real gRPC: the storms of `make storm` as scenarios, played by both.
// Its tests compare in virtual time, and with what make storm has measured in real time (testdata/storm.json).
package simcheck
