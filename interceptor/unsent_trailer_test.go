// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"testing"

	"google.golang.org/grpc/metadata"
)

// An attempt is unsent only if gRPC has left the trailer alone: one without any key, or nil, is a stream's.
func TestUnsent_Trailer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		writes  bool
		trailer metadata.MD
		want    bool
	}{{false, nil, true}, {true, nil, false}, {true, metadata.MD{}, false}} {
		a := attempt{attemptOptions: newAttemptOptions(false)}
		if row.writes {
			a.trailer = row.trailer
		}
		a.recordEnd(nil)
		a.noteReport()
		if got := a.report.unsent; got != row.want {
			t.Errorf("%+v: unsent %v; want %v", row, got, row.want)
		}
	}
}
