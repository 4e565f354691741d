// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/policy"
)

// orders is the API of the examples, from its descriptor set.
func orders(t *testing.T) *registry {
	t.Helper()
	files, err := policy.LoadDescriptors("../../../../examples/orders/orders.binpb")
	if err != nil {
		t.Fatal(err)
	}
	return newRegistry(files)
}

func TestRegistryMakesResponsesOfJSON(t *testing.T) {
	known := orders(t)
	stage(t, newControl(known), func(t *testing.T, s scene) {
		s.script(t, get, `{"replies": [{"json": {"name": "7"}}]}`)
		d, err := known.FindDescriptorByName("acme.orders.v1.Order")
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

func TestRegistryKnowsLinkedTypes(t *testing.T) {
	t.Parallel()
	known := orders(t)
	for _, name := range []protoreflect.FullName{"acme.orders.v1.Order", "google.rpc.ErrorInfo"} {
		if m, err := known.FindMessageByURL("type.googleapis.com/" + string(name)); err != nil || m.Descriptor().FullName() != name {
			t.Errorf("%s: got %v, %v", name, m, err)
		}
	}
	if m, err := known.FindMessageByName("acme.orders.v1.None"); err == nil {
		t.Errorf("got %v; want an error", m)
	}
	if f, err := known.FindFileByPath("google/protobuf/any.proto"); err != nil || f.Package() != "google.protobuf" {
		t.Errorf("got %v, %v", f, err)
	}
}
