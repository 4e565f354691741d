// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"math"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// double is a field of a load report.
func double(report []byte, number protowire.Number, value float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(report, number, protowire.Fixed64Type), math.Float64bits(value))
}

func TestUtilization(t *testing.T) {
	t.Parallel()
	const cpu = 1
	named := protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), []byte("\n\x01x"))
	whole := double(double(named, cpu, 0.9), applicationUtilization, 0.5)
	for name, row := range map[string]struct {
		trailer metadata.MD
		want    float64
	}{
		"no trailer":           {nil, 0},
		"no report":            {metadata.Pairs("retry-after", "1"), 0},
		"the whole report":     {metadata.Pairs(loadReport, string(whole)), 0.5},
		"above 1":              {metadata.Pairs(loadReport, string(double(nil, applicationUtilization, 1.7))), 1.7},
		"only the CPU's":       {metadata.Pairs(loadReport, string(double(nil, cpu, 0.9))), 0},
		"two: the first":       {metadata.Pairs(loadReport, string(whole), loadReport, "x"), 0.5},
		"the field twice":      {metadata.Pairs(loadReport, string(double(whole, applicationUtilization, 0.6))), 0.6},
		"empty":                {metadata.Pairs(loadReport, ""), 0},
		"cut":                  {metadata.Pairs(loadReport, string(whole[:len(whole)-1])), 0},
		"no field":             {metadata.Pairs(loadReport, "\xff"), 0},
		"of another kind":      {metadata.Pairs(loadReport, string(protowire.AppendVarint(protowire.AppendTag(nil, applicationUtilization, protowire.VarintType), 1))), 0},
		"rubbish after it":     {metadata.Pairs(loadReport, string(whole)+"\xff"), 0},
		"negative":             {metadata.Pairs(loadReport, string(double(nil, applicationUtilization, -1))), 0},
		"not a number":         {metadata.Pairs(loadReport, string(double(nil, applicationUtilization, math.NaN()))), 0},
		"more than any number": {metadata.Pairs(loadReport, string(double(nil, applicationUtilization, math.Inf(1)))), 0},
	} {
		if got := utilization(row.trailer); got != row.want {
			t.Errorf("%s: %v; want %v", name, got, row.want)
		}
	}
}

func FuzzUtilization(f *testing.F) {
	f.Add("")
	f.Add(string(double(nil, applicationUtilization, 0.5)))
	f.Fuzz(func(t *testing.T, report string) {
		if got := utilization(metadata.Pairs(loadReport, report)); got < 0 || math.IsNaN(got) || math.IsInf(got, 0) {
			t.Errorf("%v", got)
		}
	})
}
