// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
)

var write = flag.String("write", "", "write the table of what was counted into this `file`, if all tests passed")

func TestMain(m *testing.M) {
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // some policies of these tests retry undeclared methods, which causes warnings
	code := m.Run()
	if err := counted.compare(page, *write); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
