// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outage

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

func TestServersReportTheirLoad(t *testing.T) {
	t.Parallel()
	for _, reports := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, s := plain(), pulse()
			s.Services[0].Reports = reports
			w, err := newWorld(t.Context(), s, &c)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			var trailer metadata.MD
			if err := w.users.conns[0].Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Trailer(&trailer)); err != nil {
				t.Fatal(err)
			}
			if got := len(trailer.Get("endpoint-load-metrics-bin")) > 0; got != reports {
				t.Errorf("reports: %v; want %v", got, reports)
			}
		})
	}
}
