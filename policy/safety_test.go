// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/policy"
)

// The services that this program knows, registered as generated code does it.
var _ = registerShop()

func registerShop() protoreflect.FileDescriptor {
	level := func(l descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodOptions {
		return &descriptorpb.MethodOptions{IdempotencyLevel: l.Enum()}
	}
	method := func(name string, o *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".shop.Any"), OutputType: new(".shop.Any"), Options: o,
		}
	}
	get := method("Get", level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS))
	put := method("Put", level(descriptorpb.MethodOptions_IDEMPOTENT))
	mall := &descriptorpb.ServiceDescriptorProto{Name: new("Mall")}
	for i := range 25 {
		mall.Method = append(mall.Method, method(fmt.Sprintf("Pay%02d", i), nil))
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("shop.proto"), Package: new("shop"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{Name: new("Safe"), Method: []*descriptorpb.MethodDescriptorProto{get, put}},
			{Name: new("Mixed"), Method: []*descriptorpb.MethodDescriptorProto{
				get, method("Pay", nil), method("Add", level(descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN)),
			}},
			mall,
		},
	}, nil)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
	return file
}

func TestSafeIsWhatThePolicyDeclaresOrLeavesToTheDescriptor(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule   policy.Idempotency
		method string
		want   bool
	}{
		{policy.IdempotencyAssume, "/shop.Mixed/Pay", true},
		{policy.IdempotencyAssume, "/un.Known/Method", true},
		{policy.IdempotencyNone, "/shop.Mixed/Get", false},
		{policy.IdempotencyDeclared, "/shop.Safe/Get", true},
		{policy.IdempotencyDeclared, "/shop.Safe/Put", true},
		{policy.IdempotencyDeclared, "/shop.Mixed/Pay", false},
		{policy.IdempotencyDeclared, "/shop.Mixed/Add", false},
		{policy.IdempotencyDeclared, "/shop.Mixed/None", false},
		{policy.IdempotencyDeclared, "/shop.Any/Get", false}, // a message
		{policy.IdempotencyDeclared, "/un.Known/Method", false},
		{policy.IdempotencyDeclared, "shop.Safe", false},
		{policy.IdempotencyDeclared, "", false},
		{policy.IdempotencyByName, "/shop.Safe/Get", true},
	} {
		p, err := policy.New(policy.Spec{Idempotency: row.rule})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Safe(row.method); got != row.want {
			t.Errorf("%v: Safe(%q) = %v; want %v", row.rule, row.method, got, row.want)
		}
	}
}

const unsafe = " will be retried only if the attempt never left the client, since nothing declares it safe to repeat; " +
	`name the method in an entry, set idempotency_level in its .proto, or add "idempotency: ASSUME" to this entry`

func TestLoadingWarnsOfMethodsThatNothingDeclaresSafe(t *testing.T) {
	t.Parallel()
	const retry = "  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("/shop.Mall/Pay%02d", i))
	}
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{"all methods declared", "methodConfig:\n- name: [{service: shop.Safe}]\n" + retry, nil},
		{"a name with method declares it", "methodConfig:\n- name: [{service: shop.Mixed, method: Pay}]\n" + retry, nil},
		{"no retries", "methodConfig:\n- name: [{service: shop.Mixed}]\n  timeout: 1s\n", nil},
		{"assumed by the entry", "methodConfig:\n- name: [{service: shop.Mixed}]\n  idempotency: ASSUME\n" + retry, nil},
		{"assumed by the file", "idempotency: ASSUME\nmethodConfig:\n- name: [{service: shop.Mixed}]\n" + retry, nil},
		{"switched off", "methodConfig:\n- name: [{service: shop.Mixed}]\n  idempotency: NONE\n" + retry, nil},
		{"some not declared", "methodConfig:\n- name: [{service: shop.Safe}, {service: shop.Mixed}]\n" + retry, []string{
			`f:2:32: methodConfig[0].name[1]: "/shop.Mixed/": /shop.Mixed/Add, /shop.Mixed/Pay` + unsafe,
		}},
		{"one has an entry of its own", "methodConfig:\n- name: [{service: shop.Mixed}]\n" + retry +
			"- name: [{service: shop.Mixed, method: Pay}]\n", []string{
			`f:2:10: methodConfig[0].name[0]: "/shop.Mixed/": /shop.Mixed/Add` + unsafe,
		}},
		{"more than anyone reads", "methodConfig:\n- name: [{service: shop.Mall}]\n" + retry, []string{
			`f:2:10: methodConfig[0].name[0]: "/shop.Mall/": ` + strings.Join(many, ", ") + " and 5 more" + unsafe,
		}},
		{"a service that is not linked in", "methodConfig:\n- name: [{service: un.Known}]\n" + retry, []string{
			`f:2:10: methodConfig[0].name[0]: "/un.Known/": a method` + unsafe,
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			wantWarnings(t, mustParse(t, "f", row.text), row.want)
		})
	}
}

// TestTheDefaultEntryIsAskedForEveryService has the name for everything, where a service with an
// entry of its own is that entry's business.
func TestTheDefaultEntryIsAskedForEveryService(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
methodConfig:
- name: [{}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
- name: [{service: shop.Mall}]
`)
	if w := set.Warnings(); len(w) != 1 || w[0].Field != "methodConfig[0].name[0]" ||
		!strings.Contains(w[0].Message, "/shop.Mixed/Pay") || strings.Contains(w[0].Message, "/shop.Mall/") {
		t.Errorf("Warnings = %v; want one that names /shop.Mixed/Pay but nothing of /shop.Mall/", w)
	}
}

func wantWarnings(t *testing.T, set *policy.Set, want []string) {
	t.Helper()
	got := set.Warnings()
	if len(got) != len(want) {
		t.Fatalf("Warnings = %v; want %v", got, want)
	}
	for i, w := range got {
		if w.String() != want[i] {
			t.Errorf("warning %d is\n%s\nwant\n%s", i, w, want[i])
		}
	}
}

func TestAServiceWhoseCallsSendKeysNeedsNoWarning(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
methodConfig:
- name: [{service: a.B}]
  idempotencyKey: {}
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
`)
	if got := set.Warnings(); len(got) != 0 {
		t.Errorf("Warnings = %v", got)
	}
}
