// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/testserver"
)

// attempt is one request as the server saw it, in JSON.
type attempt struct {
	Serial           int                 `json:"serial"` // among all that have arrived, from 1
	Method           string              `json:"method"`
	Number           int                 `json:"number"`     // among those of its method, from 1
	Connection       int                 `json:"connection"` // from 1
	StartTime        time.Time           `json:"startTime"`
	EndTime          *time.Time          `json:"endTime"`          // null while it runs
	TimeoutSeconds   float64             `json:"timeoutSeconds"`   // at its start, until the client's deadline; 0 without one
	PreviousAttempts int                 `json:"previousAttempts"` // what the client says (gRFC A6)
	Metadata         map[string][]string `json:"metadata"`         // values of keys that end in -bin in base64
	MessagesReceived int                 `json:"messagesReceived"`
	BytesReceived    int                 `json:"bytesReceived"` // without gRPC's framing, after decompression
	HalfClosed       bool                `json:"halfClosed"`
	MessagesSent     int                 `json:"messagesSent"`
	Code             string              `json:"code"`      // empty while it runs
	Cancelled        bool                `json:"cancelled"` // by the client, its deadline or its connection
	Requests         [][]byte            `json:"requests,omitempty"`
}

// toJSON is an attempt without requests.
func toJSON(a testserver.Attempt) attempt {
	j := attempt{
		Serial: a.Serial, Method: a.Method, Number: a.Number, Connection: a.Conn,
		StartTime: a.Time, TimeoutSeconds: a.Timeout.Seconds(),
		PreviousAttempts: previous(a.Metadata), Metadata: maps.Clone(a.Metadata),
		MessagesReceived: a.Received, BytesReceived: a.Bytes, HalfClosed: a.HalfClosed, MessagesSent: a.Sent,
		Cancelled: a.Cancelled,
	}
	if !a.End.IsZero() {
		j.EndTime, j.Code = &a.End, codename.Of(a.Code)
	}
	for key, values := range j.Metadata {
		if strings.HasSuffix(key, "-bin") {
			values = slices.Clone(values)
			for i, v := range values {
				values[i] = base64.StdEncoding.EncodeToString([]byte(v))
			}
			j.Metadata[key] = values
		}
	}
	return j
}

// previous is what the client says of itself in grpc-previous-rpc-attempts (gRFC A6); 0 for what cannot be read.
func previous(md metadata.MD) int {
	values := md.Get("grpc-previous-rpc-attempts")
	if len(values) != 1 {
		return 0
	}
	n, _ := strconv.ParseUint(values[0], 10, 31)
	return int(n)
}
