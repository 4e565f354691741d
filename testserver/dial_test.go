// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"testing"

	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/testserver"
)

func TestDialAllErrors(t *testing.T) {
	t.Parallel()
	twin := func() *testserver.Server { return testserver.Start(t, testserver.Listener(bufconn.Listen(1))) }
	for _, row := range []struct {
		servers []*testserver.Server
		want    string
	}{
		{nil, "testserver: DialAll without servers: want at least one"},
		{[]*testserver.Server{twin(), twin()}, `testserver: DialAll: two servers named "bufconn": want one name each`},
	} {
		if _, err := testserver.DialAll(row.servers); err == nil || err.Error() != row.want {
			t.Errorf("got error %v; want %s", err, row.want)
		}
	}
}
