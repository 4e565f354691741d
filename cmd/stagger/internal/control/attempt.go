// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// Attempt is an attempt as the control service shows it, without requests.
func Attempt(a testserver.Attempt) *faultserverv1.Attempt {
	p := &faultserverv1.Attempt{
		Serial:           uint32(a.Serial),
		Method:           strings.ToValidUTF8(a.Method, "\ufffd"),
		Number:           uint32(a.Number),
		Connection:       uint32(a.Conn),
		StartTime:        timestamppb.New(a.Time),
		PreviousAttempts: previous(a.Metadata),
		Metadata:         entries(a.Metadata),
		MessagesReceived: uint32(a.Received),
		BytesReceived:    uint64(a.Bytes),
		HalfClosed:       a.HalfClosed,
		MessagesSent:     uint32(a.Sent),
		Cancelled:        a.Cancelled,
	}
	if !a.End.IsZero() {
		p.EndTime, p.Code = timestamppb.New(a.End), CodeName(a.Code)
	}
	if a.Timeout != 0 {
		p.Timeout = durationpb.New(a.Timeout)
	}
	return p
}

// previous is what the client says of itself (gRFC A6).
func previous(md metadata.MD) uint32 {
	values := md.Get("grpc-previous-rpc-attempts")
	if len(values) != 1 {
		return 0
	}
	n, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// entries are metadata by key.
func entries(md metadata.MD) []*faultserverv1.Entry {
	var list []*faultserverv1.Entry
	for _, key := range slices.Sorted(maps.Keys(md)) {
		for _, value := range md[key] {
			e := &faultserverv1.Entry{Key: strings.ToValidUTF8(key, "\ufffd")}
			if strings.HasSuffix(key, "-bin") {
				e.Binary = []byte(value)
			} else {
				e.Value = strings.ToValidUTF8(value, "\ufffd")
			}
			list = append(list, e)
		}
	}
	return list
}
