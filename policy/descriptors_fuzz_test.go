// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func FuzzDescriptors(f *testing.F) {
	f.Add(marshal(f, smallSet(nil)))
	f.Add(marshal(f, smallSet(with(goodRetry(nil)))))
	f.Add(marshal(f, smallSet(&descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_IDEMPOTENT.Enum()})))
	f.Fuzz(tryDescriptors)
}

// FuzzOption has descriptor sets with a hostile policy of a method, which are otherwise valid.
func FuzzOption(f *testing.F) {
	for _, edit := range []func(*policyv1.RetryPolicy){
		nil,
		func(r *policyv1.RetryPolicy) { r.RetryableStatusCodes = []policyv1.StatusCode{-1, 0, 17, 1 << 30} },
		func(r *policyv1.RetryPolicy) {
			r.InitialBackoff = &durationpb.Duration{Seconds: -1 << 63, Nanos: 1<<31 - 1}
		},
		func(r *policyv1.RetryPolicy) {
			r.PerCode = []*policyv1.CodePolicy{nil, {Codes: r.GetRetryableStatusCodes(), Growth: -1, BackoffMultiplier: new(-1.0)}}
		},
	} {
		f.Add(marshal(f, goodRetry(edit)))
	}
	f.Fuzz(func(t *testing.T, option []byte) {
		options := new(descriptorpb.MethodOptions)
		number := policyv1.E_Retry.TypeDescriptor().Number()
		options.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), option))
		tryDescriptors(t, marshal(t, smallSet(options)))
	})
}

// smallSet is apiSet with as few imports as possible: every byte slows the search down.
func smallSet(options *descriptorpb.MethodOptions) *descriptorpb.FileDescriptorSet {
	set := apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": options, "List": nil})
	message := func(name string) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{
			Name: &name, ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{{Start: new(int32(1000)), End: new(int32(1 << 29))}},
		}
	}
	retry := &descriptorpb.FieldDescriptorProto{
		Name: new("retry"), Number: new(int32(policyv1.E_Retry.TypeDescriptor().Number())), Extendee: new(".google.protobuf.MethodOptions"),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum(),
	}
	set.File = []*descriptorpb.FileDescriptorProto{
		{Name: new("d"), Package: new("google.protobuf"), MessageType: []*descriptorpb.DescriptorProto{message("MethodOptions")}},
		{
			Name: new("stagger/policy/v1/options.proto"), Package: new("stagger.policy.v1"), Dependency: []string{"d"},
			Extension: []*descriptorpb.FieldDescriptorProto{retry},
		},
		apiOf(set),
	}
	return set
}

// tryDescriptors requires an error or a set that can be used.
func tryDescriptors(t *testing.T, data []byte) {
	t.Helper()
	files, err := policy.ParseDescriptors("api.binpb", data)
	if (files == nil) == (err == nil) {
		t.Fatalf("ParseDescriptors = %v, %v; want one of the two", files, err)
	}
	if err != nil {
		wantReadable(t, err)
		return
	}
	for _, file := range []string{"{}", "budgets: [{name: b, ratio: {}}]\nmethodConfig: [{name: [{service: acme.v1.Orders, method: List}]}]"} {
		set, err := mustParse(t, "f", file).WithDescriptors(files)
		if (set == nil) == (err == nil) {
			t.Fatalf("WithDescriptors = %v, %v; want one of the two", set, err)
		}
		if err != nil {
			wantReadable(t, err)
			continue
		}
		use(t, set)
		for _, p := range set.Policies() {
			set.DeclaredIdempotent(p.Name())
		}
	}
}

func wantReadable(t *testing.T, err error) {
	t.Helper()
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok || len(fault.Diagnostics) == 0 {
		t.Fatalf("%v is no *policy.Error with problems", err)
	}
	for _, p := range fault.Diagnostics {
		if p.File == "" || p.Message == "" || !utf8.ValidString(p.String()) {
			t.Errorf("problem %+v lacks something", p)
		}
	}
}

func TestFuzzReach(t *testing.T) {
	t.Parallel()
	set, err := describe(t, "{}", smallSet(with(goodRetry(nil))))
	if err != nil || set.Lookup("/acme.v1.Orders/Get") == nil {
		t.Errorf("WithDescriptors finds no policy: %v", err)
	}
}
