// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func TestOptionRefused(t *testing.T) {
	t.Parallel()
	type retry = policyv1.RetryPolicy
	for _, row := range []struct {
		name string
		edit func(*retry)
		want string // after the file and the method's option
	}{
		{"empty", func(r *retry) { proto.Reset(r) }, `.maxAttempts: is required; must be at least 2, since it counts the first attempt; for one attempt leave the policy out
.initialBackoff: is required; must be more than 0s
.maxBackoff: is required; must be more than 0s
.backoffMultiplier: is required; must be a number more than 0
.retryableStatusCodes: is required; must list at least one code, such as UNAVAILABLE`},
		{"one attempt", func(r *retry) { r.MaxAttempts = 1 }, `.maxAttempts: 1: must be at least 2, since it counts the first attempt; for one attempt leave the policy out`},
		{"a zero that is written", func(r *retry) { r.PerAttemptTimeout = &durationpb.Duration{} }, `.perAttemptTimeout: 0s: must be more than 0s`},
		{"a negative time", func(r *retry) { r.MaxPushback = &durationpb.Duration{Nanos: -1} }, `.maxPushback: -1ns: must be more than 0s`},
		{
			"a time that is none", func(r *retry) { r.InitialBackoff = &durationpb.Duration{Seconds: 1, Nanos: -1} },
			`.initialBackoff: {seconds: 1, nanos: -1}: must have nanos from 0 to 999999999, with the sign of the seconds, and at most 10,000 years`,
		},
		{
			"a time that Go would cut", func(r *retry) { r.MaxBackoff = &durationpb.Duration{Seconds: 1 << 35} },
			`.maxBackoff: {seconds: 34359738368}: must be at most 9223372035s, 292 years`,
		},
		{
			"a budget that the file lacks", func(r *retry) { r.Budget = "oders" },
			`.budget: "oders": no budget has that name; declare it under budgets, or write NONE for no limit`,
		},
		{
			"a code without a name", func(r *retry) { r.RetryableStatusCodes = append(r.RetryableStatusCodes, 99) },
			`.retryableStatusCodes[1]: 99: must be a status code's name such as UNAVAILABLE, or its number, 1 to 16`,
		},
		{
			"a negative code alone", func(r *retry) { r.RetryableStatusCodes = []policyv1.StatusCode{-1} },
			`.retryableStatusCodes[0]: -1: must be a status code's name such as UNAVAILABLE, or its number, 1 to 16`,
		},
		{"OK", func(r *retry) { r.RetryableStatusCodes = append(r.RetryableStatusCodes, 0) }, `.retryableStatusCodes: "OK": is not a failure; list codes such as UNAVAILABLE`},
		{"a growth without a name", func(r *retry) { r.Growth = 4 }, `.growth: 4: must be EXPONENTIAL, LINEAR or FIXED`},
		{
			"inside of perCode", func(r *retry) {
				r.PerCode = []*policyv1.CodePolicy{{Codes: []policyv1.StatusCode{14}, Jitter: 77, MaxAttempts: new(uint32(0))}}
			},
			`.perCode[0].jitter: 77: must be NONE, FULL, EQUAL, DECORRELATED or PROPORTIONAL
.perCode[0].maxAttempts: 0: must be 1 to the policy's maxAttempts, 3`,
		},
		{
			"an override as nothing", func(r *retry) {
				r.CodeOverrides = []*policyv1.CodeOverride{{Codes: []policyv1.StatusCode{2}, As: -5}}
			},
			`.codeOverrides[0].as: -5: must be a status code's name such as UNAVAILABLE, or its number, 1 to 16`,
		},
		{"a novel", func(r *retry) { r.Budget = strings.Repeat("x", 1<<14) }, `: is larger than 16384 bytes`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set := apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": with(goodRetry(row.edit))})
			_, err := describe(t, "{}", set)
			const option = "acme/v1/orders.proto: /acme.v1.Orders/Get: (stagger.policy.v1.retry)"
			want := option + strings.ReplaceAll(row.want, "\n", "\n"+option)
			if err == nil || err.Error() != want {
				t.Errorf("WithDescriptors =\n%v\nwant\n%s", err, want)
			}
			if fault, ok := errors.AsType[*policy.Error](err); !ok || fault.Diagnostics[0].File != "acme/v1/orders.proto" {
				t.Errorf("%v is no *policy.Error with the file of the option", err)
			}
		})
	}
}

func TestOptionThatDoesNotHold(t *testing.T) {
	t.Parallel()
	bad := goodRetry(func(r *policyv1.RetryPolicy) { r.MaxAttempts = 0 })
	service := new(descriptorpb.ServiceOptions)
	proto.SetExtension(service, policyv1.E_ServiceRetry, bad)
	set := apiSet(service, map[string]*descriptorpb.MethodOptions{"Get": with(bad)})
	for file, want := range map[string]int{
		"{}":                           2,
		"methodConfig: [{name: [{}]}]": 0,
		"methodConfig: [{name: [{service: acme.v1.Orders}]}]":              0,
		"methodConfig: [{name: [{service: acme.v1.Orders, method: Get}]}]": 1,
	} {
		_, err := describe(t, file, set)
		n := 0
		if fault, ok := errors.AsType[*policy.Error](err); ok {
			n = len(fault.Diagnostics)
		}
		if n != want {
			t.Errorf("%s: %v; want %d problems", file, err, want)
		}
	}
}

// The setting "processed" requires the names of methods: an option of a whole service can't have it.
func TestOption_Processed(t *testing.T) {
	t.Parallel()
	full := goodRetry(func(r *policyv1.RetryPolicy) {
		r.PerCode = []*policyv1.CodePolicy{{
			Codes: []policyv1.StatusCode{14}, Processed: policyv1.Processed_PROCESSED_NO, ErrorInfo: &policyv1.ErrorInfo{Domain: "acme.com", Reason: "FULL"},
		}}
	})
	set, err := describe(t, "{}", apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": with(full)}))
	if err != nil || !set.Lookup("/acme.v1.Orders/Get").Spec().Retry.PerCode[0].NotProcessed {
		t.Errorf("of a method: %v", err)
	}
	service := new(descriptorpb.ServiceOptions)
	proto.SetExtension(service, policyv1.E_ServiceRetry, full)
	_, err = describe(t, "{}", apiSet(service, nil))
	const want = "acme/v1/orders.proto: /acme.v1.Orders/: (stagger.policy.v1.service_retry).perCode[0].processed: NO: needs an entry whose names all give service and method"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("of a service: %v; want %s…", err, want)
	}
}

func TestOptionLine(t *testing.T) {
	t.Parallel()
	set := apiSet(nil, map[string]*descriptorpb.MethodOptions{
		"Create": with(goodRetry(func(r *policyv1.RetryPolicy) { r.MaxAttempts = 1 })),
		"Get":    with(goodRetry(func(r *policyv1.RetryPolicy) { r.Budget = "none" })),
	})
	apiOf(set).SourceCodeInfo = &descriptorpb.SourceCodeInfo{Location: []*descriptorpb.SourceCodeInfo_Location{
		{Path: []int32{6, 0, 2, 0}, Span: []int32{22, 2, 40}}, {Path: []int32{6, 0, 2, 1}, Span: []int32{11, 2, 40}},
	}}
	_, err := describe(t, "{}", set)
	want := []string{
		"acme/v1/orders.proto:12:3: /acme.v1.Orders/Get: (stagger.policy.v1.retry).budget: ",
		"acme/v1/orders.proto:23:3: /acme.v1.Orders/Create: (stagger.policy.v1.retry).maxAttempts: 1: ",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], want[0]) || !strings.HasPrefix(lines[1], want[1]) {
		t.Errorf("WithDescriptors =\n%v\nwant lines that begin with\n%s", err, strings.Join(want, "\n"))
	}
}

func TestOptionOfLaterVersion(t *testing.T) {
	t.Parallel()
	r := goodRetry(nil)
	r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1999, protowire.VarintType), 1))
	set, err := describe(t, "{}", apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": with(r)}))
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, set, []string{"acme/v1/orders.proto: /acme.v1.Orders/Get: (stagger.policy.v1.retry): " +
		"field number 1999 is not known to this version of stagger and has no effect: a later version defines it"})
}

// TestOptionOfSameNumber has another organization's option with the same number.
func TestOptionOfSameNumber(t *testing.T) {
	t.Parallel()
	options := new(descriptorpb.MethodOptions)
	number := policyv1.E_Retry.TypeDescriptor().Number()
	options.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), "a text"))
	set := apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": options})
	_, err := describe(t, "{}", set)
	const want = "acme/v1/orders.proto: /acme.v1.Orders/Get: (stagger.policy.v1.retry): cannot be read; must be a stagger.policy.v1.RetryPolicy"
	if err == nil || err.Error() != want {
		t.Errorf("WithDescriptors = %v; want %s", err, want)
	}
	api := apiOf(set)
	api.Dependency = nil
	set.File = []*descriptorpb.FileDescriptorProto{api}
	if described, err := describe(t, "{}", set); err != nil || described.Lookup("/acme.v1.Orders/Get") != nil {
		t.Errorf("a set that does not import our options has a policy, or the error %v", err)
	}
}
