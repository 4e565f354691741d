// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"os"
	"slices"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

// orders is the API of the examples, from its descriptor set.
func orders(t *testing.T) *control.API {
	t.Helper()
	data, err := os.ReadFile("../../../../examples/orders/orders.binpb")
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	return control.NewAPI(files)
}

func TestAPIMakesResponsesOfJSON(t *testing.T) {
	api := orders(t)
	stage(t, control.Settings{API: api}, func(t *testing.T, s scene) {
		s.script(t, get, `{"replies": [{"json": {"name": "7"}}]}`)
		d, err := api.FindDescriptorByName("acme.orders.v1.Order")
		if err != nil {
			t.Fatal(err)
		}
		order := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
		if err := s.conn.Invoke(t.Context(), get, &emptypb.Empty{}, order); err != nil {
			t.Fatal(err)
		}
		wantText(t, "name", order.Get(order.Descriptor().Fields().ByName("name")).String(), "7")
	})
}

func TestAPIRefusesOtherJSON(t *testing.T) {
	api := orders(t)
	stage(t, control.Settings{API: api}, func(t *testing.T, s scene) {
		for _, row := range []struct{ method, json, want string }{
			{get, `{"id": "7"}`, `must be the JSON form of acme.orders.v1.Order: unknown field "id"`},
			{get, `7`, `must be the JSON form of acme.orders.v1.Order: unexpected token 7`},
			{
				"/acme.orders.v1.OrderService/*", `{}`,
				"must be raw: only the script of one method knows what its responses are, and this one is for /acme.orders.v1.OrderService/*",
			},
			{
				"/acme.orders.v1.OrderService/Nothing", `{}`,
				"must be raw, or the server must be started with --descriptors: it does not know the method /acme.orders.v1.OrderService/Nothing",
			},
		} {
			_, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{
				Method: row.method, Steps: steps(t, `{"replies": [{"json": `+row.json+`}]}`),
			})
			wantText(t, row.json, status.Convert(err).Message(), "steps[0].replies[0].json: "+row.want)
		}
	})
}

func TestAPIInReflection(t *testing.T) {
	stage(t, control.Settings{API: orders(t)}, func(t *testing.T, s scene) {
		shown := services(t, s)
		for _, want := range []string{"acme.orders.v1.OrderService", "stagger.faultserver.v1.FaultService", "grpc.health.v1.Health"} {
			if !slices.Contains(shown, want) {
				t.Errorf("reflection shows %v; want %s among them", shown, want)
			}
		}
	})
}

func TestAPIKnowsLinkedTypes(t *testing.T) {
	t.Parallel()
	api := orders(t)
	for _, name := range []protoreflect.FullName{"acme.orders.v1.Order", "google.rpc.ErrorInfo"} {
		if m, err := api.FindMessageByURL("type.googleapis.com/" + string(name)); err != nil || m.Descriptor().FullName() != name {
			t.Errorf("%s: got %v, %v", name, m, err)
		}
	}
	if m, err := api.FindMessageByName("acme.orders.v1.None"); err == nil {
		t.Errorf("got %v; want an error", m)
	}
	if f, err := api.FindFileByPath("google/protobuf/any.proto"); err != nil || f.Package() != "google.protobuf" {
		t.Errorf("got %v, %v", f, err)
	}
}
