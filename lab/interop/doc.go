// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop holds stagger against software that was not written for it: nginx and HAProxy between client and server,
// etcd under kill -9, servers and clients in Python and Node. Its tests start what is installed, on loopback, and count
// what became of every call; `make interop` installs it and runs them, and -write makes docs/evidence/interop.md of
// what was counted.
package interop
