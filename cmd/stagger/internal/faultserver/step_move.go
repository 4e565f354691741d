// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"math"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

func (b *builder) moves(path string, list []*faultserverv1.Move) []testserver.Move {
	moves := make([]testserver.Move, len(list))
	for i, m := range list {
		moves[i] = b.move(document.Item(path, i), m)
	}
	return moves
}

func (b *builder) move(path string, m *faultserverv1.Move) testserver.Move {
	switch m := m.GetMove().(type) {
	case *faultserverv1.Move_Receive:
		return testserver.Receive(b.atLeastOne(path+".receive", m.Receive))
	case *faultserverv1.Move_ReceiveAll:
		return testserver.Receive(0)
	case *faultserverv1.Move_SendHeader:
		return testserver.SendHeader(b.metadata(path+".sendHeader.entries", m.SendHeader.GetEntries()))
	case *faultserverv1.Move_Send:
		return testserver.SendRaw(b.message(path+".send", m.Send)...)
	case *faultserverv1.Move_Echo:
		return testserver.Echo(b.atLeastOne(path+".echo", m.Echo))
	case *faultserverv1.Move_EchoAll:
		return testserver.Echo(0)
	case *faultserverv1.Move_Pause:
		return testserver.Pause(b.wait(path+".pause", m.Pause))
	case *faultserverv1.Move_Cut:
		return testserver.Cut()
	}
	b.report.Errorf(path, nil, "must be a move such as receive, send or cut")
	return testserver.Pause(0)
}

func (b *builder) atLeastOne(path string, n uint32) int {
	if n < 1 || n > math.MaxInt32 { // an int on every machine
		b.report.Errorf(path, n, "must be 1 to %d", math.MaxInt32)
		return 1
	}
	return int(n)
}
