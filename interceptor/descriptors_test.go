// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestDescriptors_IdempotencyLevel(t *testing.T) {
	t.Parallel()
	set := levels(t)
	retry := plain()
	alone := mustPolicy(t, spec.Policy{Retry: &retry})
	for _, row := range []struct {
		name    string
		options []interceptor.Option
		call    []grpc.CallOption
		method  string
		want    string
	}{
		{"without the set", nil, nil, create, "[]"},
		{"with the set", []interceptor.Option{interceptor.WithDescriptors(set)}, nil, create, "[100ms 200ms]"},
		{"a method without level", []interceptor.Option{interceptor.WithDescriptors(set)}, nil, "/acme.orders.v1.OrderService/DeleteOrder", "[]"},
		{"a policy of the call", []interceptor.Option{interceptor.WithDescriptors(set)}, []grpc.CallOption{interceptor.Policy(alone)}, create, "[100ms 200ms]"},
		{"a policy of the call, without the set", nil, []grpc.CallOption{interceptor.Policy(alone)}, create, "[]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(row.method, testserver.Fail(codes.Unavailable, "down").Times(2), text("done"))
				_, err := s.call(t.Context(), row.method, row.call...)
				if got := s.waits(); got != row.want || (err == nil) != (row.want != "[]") {
					t.Errorf("%v after waits of %s; want %s", err, got, row.want)
				}
			}, row.options...)
		})
	}
}

func TestDescriptors_Warnings(t *testing.T) {
	t.Parallel()
	j := new(journal)
	mustNew(t, mustSet(t, config(plain())), withJournal(j), interceptor.WithDescriptors(levels(t)))
	const want = "methodConfig: 1 method of acme.orders.v1.OrderService isn't declared idempotent" // DeleteOrder
	const lacks = `methodConfig[0].name[0]: "/acme.orders.v1.OrderService/GetOrder": matches nothing: the service has no such method`
	if len(j.notes) != 1 || !strings.HasPrefix(j.notes[0], want) || len(j.warnings) != 1 || j.warnings[0] != lacks {
		t.Errorf("notes %q, warnings %q; want one note, %s, and one warning, %s", j.notes, j.warnings, want, lacks)
	}
}

// A note about a file is reported once, and again only if a reload has changed what it says.
func TestReload_Notes(t *testing.T) {
	t.Parallel()
	j := new(journal)
	file := func(before, more string) *policy.Set {
		return mustParse(t, before+"loadBalancingConfig: [{round_robin: {}}]\nmethodConfig:\n- name: [{service: acme.orders.v1.OrderService}"+more+"]\n"+
			"  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}\n")
	}
	r := mustNew(t, file("", ""), withJournal(j))
	if len(j.notes) != 2 {
		t.Fatalf("notes %q; want two", j.notes)
	}
	for range 3 {
		testkit.NoError(t, r.Reload(file("# the same, a line further down\n", "")))
	}
	if len(j.notes) != 2 {
		t.Errorf("notes %q after reloads; want those of the start", j.notes)
	}
	testkit.NoError(t, r.Reload(file("", ", {service: acme.jobs.v1.JobService}")))
	if len(j.notes) != 3 {
		t.Errorf("notes %q; want one more, of two names", j.notes)
	}
}

// New knows generated code that is linked into the program. It says nothing of other services, unless they resemble one of these.
func TestDescriptors_NamesOfGeneratedCode(t *testing.T) {
	t.Parallel()
	j := new(journal)
	set := testkit.Must(policy.Parse("f", []byte(`methodConfig:
- name:
  - {service: `+healthpb.Health_ServiceDesc.ServiceName+`, method: Chek}
  - {service: grpc.health.v1.Health, method: Check}
  - {service: grpc.health.v1.Healt, method: Chek}
  - {service: a-b.C, method: d-e}
  - {service: a.B, method: 'Get, List'}
`)))(t)
	mustNew(t, set, withJournal(j))
	want := []string{
		`f:3:5: methodConfig[0].name[0]: "/grpc.health.v1.Health/Chek": matches nothing: the service has no such method; did you mean Check?`,
		`f:5:5: methodConfig[0].name[2]: "/grpc.health.v1.Healt/Chek": matches nothing: no descriptor has the service; did you mean grpc.health.v1.Health?`,
		`f:7:28: methodConfig[0].name[4].method: "Get, List": matches nothing: it has ',' after "Get", and there are no lists of names in one; ` +
			"give each a map of its own: name: [{service: …, method: …}, {service: …, method: …}]",
	}
	if !slices.Equal(j.warnings, want) || len(j.notes) > 0 {
		t.Errorf("warnings\n%s\nnotes %q; want\n%s", strings.Join(j.warnings, "\n"), j.notes, strings.Join(want, "\n"))
	}
}

// levels returns descriptors of the service of the other tests, where CreateOrder is IDEMPOTENT.
func levels(t *testing.T) *protoregistry.Files {
	t.Helper()
	method := func(name string, options *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".acme.orders.v1.Order"), OutputType: new(".acme.orders.v1.Order"), Options: options,
		}
	}
	return mustFiles(t, &descriptorpb.FileDescriptorProto{
		Name: new("orders.proto"), Package: new("acme.orders.v1"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Order")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("OrderService"), Method: []*descriptorpb.MethodDescriptorProto{
			method("CreateOrder", &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_IDEMPOTENT.Enum()}),
			method("DeleteOrder", nil),
		}}},
	})
}

func mustFiles(t *testing.T, files ...*descriptorpb.FileDescriptorProto) *protoregistry.Files {
	t.Helper()
	return testkit.Must(protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: files}))(t)
}
