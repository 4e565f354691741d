// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"net"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
)

func TestListenOnLoopback(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"} {
		lis, err := listen(t.Context(), "--listen", address, false)
		if err == nil {
			lis.Close()
		}
		want := "--listen " + address + ": other machines can reach it: must be 127.0.0.1, [::1] or localhost, or --allow-remote must be given"
		if err == nil || err.Error() != want || cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "127.8.8.8:0", "[::ffff:127.0.0.1]:0", "localhost:0"} {
		lis, err := listen(t.Context(), "--listen", address, false)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if tcp := lis.Addr().(*net.TCPAddr); !tcp.IP.IsLoopback() || tcp.Port == 0 {
			t.Errorf("%s: listens on %v", address, tcp)
		}
		lis.Close()
	}
}
