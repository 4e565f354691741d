// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"math"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// loadReport is the trailer with a server's load (ORCA, gRFC A51): an OrcaLoadReport of
// xds.data.orca.v3.
const loadReport = "endpoint-load-metrics-bin"

// applicationUtilization is the report's field that the application sets: the bottleneck of a service may not be the
// CPU.
const applicationUtilization protowire.Number = 9

// utilization returns the utilization that a server has reported in a trailer, or 0 if there is none or it is invalid.
func utilization(trailer metadata.MD) float64 {
	reports := trailer[loadReport]
	if len(reports) == 0 {
		return 0
	}
	var found float64
	for data := []byte(reports[0]); len(data) > 0; {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0
		}
		data = data[n:]
		if number == applicationUtilization && kind == protowire.Fixed64Type {
			bits, _ := protowire.ConsumeFixed64(data)
			found = math.Float64frombits(bits)
		}
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return 0
		}
		data = data[n:]
	}
	if !(found > 0) || math.IsInf(found, 1) {
		return 0
	}
	return found
}
