// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop tests stagger with independent software: nginx and HAProxy between client and server, etcd under kill -9,
// servers and clients in Python and Node. Its tests start installed programs on loopback, and count the outcome of every
// call. `make interop` installs them and runs the tests; -write writes docs/evidence/interop.md and results.md from the counts.
package interop
