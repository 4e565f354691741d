// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	get   = "/acme.orders.v1.OrderService/GetOrder"
	list  = "/acme.orders.v1.OrderService/ListOrders"
	check = "/grpc.health.v1.Health/Check"
	ms    = time.Millisecond
)

// scene is a server with a control service, a connection to it and a client that controls it.
type scene struct {
	*testserver.Server
	conn    *grpc.ClientConn
	control faultserverv1.FaultServiceClient
}

// stage runs play in virtual time.
func stage(t *testing.T, settings control.Settings, play func(t *testing.T, s scene), opts ...testserver.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := control.New(settings, opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Close)
		play(t, scene{srv, srv.Dial(t), faultserverv1.NewFaultServiceClient(srv.Dial(t))})
	})
}

// answer is what a client gets.
type answer struct {
	err             error
	header, trailer metadata.MD
	elapsed         time.Duration
}

func (s scene) call(ctx context.Context, method string) answer {
	var a answer
	start := time.Now()
	a.err = s.conn.Invoke(ctx, method, wrapperspb.String("request"), &wrapperspb.StringValue{}, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.elapsed = time.Since(start)
	return a
}

// codesOf calls method n times, one after the other.
func (s scene) codesOf(t *testing.T, method string, n int) string {
	t.Helper()
	var names []string
	for range n {
		names = append(names, status.Code(s.call(t.Context(), method).err).String())
	}
	return strings.Join(names, " ")
}

// steps reads steps from JSON, as a person writes them.
func steps(t *testing.T, text string) []*faultserverv1.Step {
	t.Helper()
	var s faultserverv1.Script
	if err := protojson.Unmarshal([]byte(`{"steps": [`+text+`]}`), &s); err != nil {
		t.Fatal(err)
	}
	return s.GetSteps()
}

// script sets a method's script.
func (s scene) script(t *testing.T, method, text string) {
	t.Helper()
	if _, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: method, Steps: steps(t, text)}); err != nil {
		t.Fatal(err)
	}
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s; want %s", what, got, want)
	}
}

func TestNewScriptHoldsForFirstClient(t *testing.T) {
	file := &faultserverv1.ScriptFile{Scripts: []*faultserverv1.Script{
		{Method: "*", Steps: steps(t, `{"fail": {"code": "ABORTED"}}`)},
		{Method: get, Steps: steps(t, `{"fail": {"code": "14"}}, {}`)},
	}}
	stage(t, control.Settings{Script: file}, func(t *testing.T, s scene) {
		wantText(t, "codes", s.codesOf(t, get, 3), "Unavailable OK OK")
		wantText(t, "codes of another method", s.codesOf(t, list, 2), "Aborted Aborted")
	})
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	file := &faultserverv1.ScriptFile{Scripts: []*faultserverv1.Script{{Method: "GetOrder", Steps: steps(t, `{}`)}}}
	srv, err := control.New(control.Settings{Script: file})
	if srv != nil || err == nil {
		t.Fatalf("got %v, %v; want an error", srv, err)
	}
	wantText(t, "error", err.Error(), `scripts[0].method: "GetOrder": must be "/package.Service/Method", "/package.Service/*" or "*"`)
}

func TestNewClosed(t *testing.T) {
	stage(t, control.Settings{Closed: true}, func(t *testing.T, s scene) {
		_, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: get, Steps: steps(t, `{"hang": {}}`)})
		if err != nil || s.Count("*") != 1 {
			t.Errorf("got %v and %d attempts; want the call to be one as any other", err, s.Count("*"))
		}
		wantText(t, "codes", s.codesOf(t, get, 1), "OK")
		if slices.Contains(services(t, s), "stagger.faultserver.v1.FaultService") {
			t.Error("reflection shows a service that there is not")
		}
	})
}

func TestOwnServicesAreNotRecorded(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		h, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("got %v, %v; want SERVING", h, err)
		}
		if n := s.Count("*"); n != 0 {
			t.Errorf("%d attempts; want none", n)
		}
	})
}

// services are what reflection lists.
func services(t *testing.T, s scene) []string {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(s.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range reply.GetListServicesResponse().GetService() {
		names = append(names, one.GetName())
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	_, _ = stream.Recv() // its end
	return names
}

func TestFailStatus(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		s.script(t, get, `{"fail": {"code": "NOT_FOUND", "message": "no such order"}}, {"fail": {"code": "canceled"}}`)
		if st := status.Convert(s.call(t.Context(), get).err); st.Code() != codes.NotFound || st.Message() != "no such order" {
			t.Errorf("got %v", st)
		}
		if st := status.Convert(s.call(t.Context(), get).err); st.Code() != codes.Canceled || st.Message() != "scripted failure" {
			t.Errorf("got %v", st)
		}
	})
}
