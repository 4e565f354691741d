// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// list asks for attempts.
func (s scene) list(t *testing.T, r *faultserverv1.ListAttemptsRequest) *faultserverv1.ListAttemptsResponse {
	t.Helper()
	reply, err := s.control.ListAttempts(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// serials are those of the attempts in a reply.
func serials(r *faultserverv1.ListAttemptsResponse) string {
	var list []string
	for _, a := range r.GetAttempts() {
		list = append(list, fmt.Sprint(a.GetSerial()))
	}
	return fmt.Sprintf("%s of %d, more: %v", strings.Join(list, " "), r.GetCount(), r.GetMore())
}

func TestListAttempts(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		s.script(t, get, `{"fail": {"code": "CANCELLED"}, "delay": "0.5s"}`)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		ctx = metadata.AppendToOutgoingContext(ctx, "grpc-previous-rpc-attempts", "2", "trace-bin", "\x00\xff", "shard", "7", "shard", "8")
		start := time.Now()
		s.call(ctx, get)
		a := s.list(t, &faultserverv1.ListAttemptsRequest{Requests: true}).GetAttempts()[0]

		size := proto.Size(wrapperspb.String("request"))
		got := fmt.Sprint(a.GetSerial(), a.GetMethod(), a.GetNumber(), a.GetConnection(), a.GetPreviousAttempts(), a.GetMessagesReceived(),
			a.GetBytesReceived(), a.GetHalfClosed(), a.GetMessagesSent(), a.GetCode(), a.GetCancelled(), a.GetTimeout().AsDuration())
		wantText(t, "attempt", got, fmt.Sprint(uint32(1), get, uint32(1), uint32(2), uint32(2), uint32(1), uint64(size), false, uint32(0), "CANCELLED", false, 2*time.Second))
		if !a.GetStartTime().AsTime().Equal(start) || a.GetEndTime().AsTime().Sub(start) != 500*ms {
			t.Errorf("from %v to %v; want half a second from %v", a.GetStartTime(), a.GetEndTime(), start)
		}
		var sent wrapperspb.StringValue
		if err := proto.Unmarshal(a.GetRequests()[0], &sent); err != nil || sent.GetValue() != "request" {
			t.Errorf("request %v, %v", &sent, err)
		}
		var md []string
		for _, e := range a.GetMetadata() {
			if strings.HasPrefix(e.GetKey(), "shard") || strings.HasSuffix(e.GetKey(), "-bin") {
				md = append(md, fmt.Sprintf("%s=%s%q", e.GetKey(), e.GetValue(), e.GetBinary()))
			}
		}
		wantText(t, "metadata", strings.Join(md, " "), `shard=7"" shard=8"" trace-bin="\x00\xff"`)
	})
}

func TestListAttemptsThatRun(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		s.script(t, get, `{"hang": {}}`)
		ctx, cancel := context.WithCancel(t.Context())
		go s.call(ctx, get)
		synctest.Wait()
		a := s.list(t, &faultserverv1.ListAttemptsRequest{}).GetAttempts()[0]
		if a.GetEndTime() != nil || a.GetCode() != "" || a.GetTimeout() != nil {
			t.Errorf("got %v; want no end and no timeout", a)
		}
		cancel()
		synctest.Wait()
		a = s.list(t, &faultserverv1.ListAttemptsRequest{}).GetAttempts()[0]
		if a.GetEndTime() == nil || a.GetCode() != "CANCELLED" || !a.GetCancelled() {
			t.Errorf("got %v; want it given up", a)
		}
	})
}

func TestListAttemptsPages(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		for range 3 {
			s.call(t.Context(), get)
			s.call(t.Context(), list)
		}
		for _, row := range []struct {
			request *faultserverv1.ListAttemptsRequest
			want    string
		}{
			{&faultserverv1.ListAttemptsRequest{}, "1 2 3 4 5 6 of 6, more: false"},
			{&faultserverv1.ListAttemptsRequest{Method: "*", Limit: 2}, "1 2 of 6, more: true"},
			{&faultserverv1.ListAttemptsRequest{Method: list}, "2 4 6 of 3, more: false"},
			{&faultserverv1.ListAttemptsRequest{Method: get, After: 1, Limit: 1}, "3 of 3, more: true"},
			{&faultserverv1.ListAttemptsRequest{Method: get, After: 3, Limit: 1}, "5 of 3, more: false"},
			{&faultserverv1.ListAttemptsRequest{Method: "/acme.orders.v1.OrderService/*", After: 5}, "6 of 6, more: false"},
			{&faultserverv1.ListAttemptsRequest{Method: "/acme.other.v1.Service/*"}, " of 0, more: false"},
		} {
			wantText(t, fmt.Sprint(row.request), serials(s.list(t, row.request)), row.want)
		}
	})
}

func TestListAttemptsKept(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		for range 5 {
			s.call(t.Context(), get)
		}
		wantText(t, "attempts", serials(s.list(t, &faultserverv1.ListAttemptsRequest{})), "4 5 of 5, more: false")
	}, testserver.Keep(2))
}

func TestListAttemptsWithRequests(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		s.script(t, "*", `{"moves": [{"receiveAll": {}}]}`)
		half := strings.Repeat("x", 600<<10)
		for range 3 {
			if _, err := s.watch(t, half); err != nil {
				t.Fatal(err)
			}
		}
		r := &faultserverv1.ListAttemptsRequest{Requests: true}
		for i, want := range []string{"1 of 3, more: true", "2 of 3, more: true", "3 of 3, more: false"} {
			reply := s.list(t, r)
			wantText(t, "attempts", serials(reply), want)
			if n := len(reply.GetAttempts()[0].GetRequests()); n != 1 {
				t.Errorf("page %d has %d messages; want 1", i, n)
			}
			r.After = reply.GetAttempts()[0].GetSerial()
		}
		wantText(t, "attempts without messages", serials(s.list(t, &faultserverv1.ListAttemptsRequest{})), "1 2 3 of 3, more: false")
		if _, err := s.watch(t, "a", half, half); err != nil {
			t.Fatal(err)
		}
		reply := s.list(t, &faultserverv1.ListAttemptsRequest{Requests: true, After: 3})
		if n := len(reply.GetAttempts()[0].GetRequests()); n != 2 || proto.Size(reply) > 1<<20 {
			t.Errorf("%d messages in %d bytes; want the two that fit into 1 MiB", n, proto.Size(reply))
		}
	})
}

func TestListAttemptsErrors(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		_, err := s.control.ListAttempts(t.Context(), &faultserverv1.ListAttemptsRequest{Method: "GetOrder", Limit: 1001})
		wantText(t, "message", status.Convert(err).Message(),
			`method: "GetOrder": must be "/package.Service/Method", "/package.Service/*", "*" or empty`+"\nlimit: 1001: must be at most 1000")
	})
}
