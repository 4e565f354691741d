// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"strings"
	"testing"
	"time"
)

// TestNginxGoaway counts what transparentRetry: DENY loses without faults: by default, nginx sends GOAWAY after each 1,000
// requests of a connection, and ignores requests in transit. gRPC alone retries those.
func TestNginxGoaway(t *testing.T) {
	required(t)
	const rate, length = 500, 10 * time.Second
	ledger := newLedger()
	one, two := startBackend(t, ledger, 5*time.Millisecond, 0), startBackend(t, ledger, 5*time.Millisecond, 0)
	p := nginx(t, "", "", one.port, two.port)
	for _, c := range []client{bare(), ours("DENY", "transparentRetry: DENY")} {
		l := startLoad(t, c.name, rate, orders(dial(t, p.dialable(), c.options(t)...), createOrder)...)
		pass(t, length)
		all := l.end()
		t.Logf("%s: %d of %d calls lost", c.name, len(all)-all.good(), len(all))
		for _, o := range all {
			switch {
			case o.err == nil:
			case c.name == bareName, !strings.HasSuffix(o.err.Error(), "the connection is draining"):
				t.Errorf("%s: %v; want none lost but by DENY to GOAWAY", c.name, o.err)
			case ledger.ran(o.request):
				t.Errorf("%s: %s was refused, and has run", c.name, o.request)
			}
		}
	}
}
