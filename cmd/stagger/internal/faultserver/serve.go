// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"errors"
	"net"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/testserver"
)

// serve serves until ctx is done, and takes over lis.
func serve(ctx context.Context, lis net.Listener, j *journal, settings control.Settings, keep int) error {
	srv, err := control.New(settings, testserver.Listener(lis), testserver.Keep(keep), testserver.Observe(j.add))
	if err != nil {
		return errors.Join(err, j.end())
	}
	<-ctx.Done()
	srv.Close()
	return j.end()
}
