// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package storm plays outages over real gRPC in memory and in virtual time, for stagger and its peers, which all get the same calls at the
// same times. Its tests measure each client, compare stagger with its targets, its peers and the simulator, and print the tables.
//
// usage: make storm, make grid
package storm
