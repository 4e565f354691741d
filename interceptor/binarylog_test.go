// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"os"
	"os/exec"
	"testing"
)

// binaryLog is what gRPC reads at its start: the methods that it logs in binary.
const binaryLog = "GRPC_BINARY_LOG_FILTER"

// A stream with a binary log takes other ways through gRPC, which asks it for its context and its
// headers by itself. So the tests of streams run once more, in a process that logs all methods.
func TestStreamsHoldWithABinaryLog(t *testing.T) {
	if os.Getenv(binaryLog) != "" {
		return // this is that process
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=Stream|Replay|Resume|Delivered|Allowance")
	again.Env = append(os.Environ(), binaryLog+"=*")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
