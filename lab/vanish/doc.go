// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Vanish measures what calls cost when a server's machine vanishes: its packets are lost, and nothing closes the connection. It also
// pauses a server's process, which must lose no connection. It runs on Linux, in real time, and writes a table of
// docs/evidence/outages.md: `make vanish`.
//
// It starts itself three times. The client has a network namespace of its own, and one end of a veth pair. The servers have
// another one, with the other end. Rules of their routing drop the packets of one address.
package main
