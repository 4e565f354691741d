// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"io"
	"net"

	"golang.org/x/net/http2"
)

// speak is the server's side of a connection in bare HTTP/2, for what gRPC's own server never says: hear is
// given every frame but the settings.
func speak(conn net.Conn, hear func(*http2.Framer, http2.Frame)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			hear(framer, frame)
		} else if !settings.IsAck() {
			_ = framer.WriteSettingsAck()
		}
	}
}
