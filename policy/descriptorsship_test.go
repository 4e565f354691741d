// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func TestAProblemHasTheLineOfItsMethodIfTheSetHasLines(t *testing.T) {
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

func TestAFieldOfALaterVersionIsAWarning(t *testing.T) {
	t.Parallel()
	r := goodRetry(nil)
	r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1999, protowire.VarintType), 1))
	set, err := describe(t, "{}", apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": with(r)}))
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, set, []string{"acme/v1/orders.proto: /acme.v1.Orders/Get: (stagger.policy.v1.retry): " +
		"field number 1999 is not known to this version of stagger and has no effect: a later one has defined it"})
}

func TestABudgetThatOnlyAnOptionNamesIsUsed(t *testing.T) {
	t.Parallel()
	const file = "budgets: [{name: orders, ratio: {}}]"
	named := with(goodRetry(func(r *policyv1.RetryPolicy) { r.Budget = "orders" }))
	set, err := describe(t, file, apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": named}))
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, set, nil)
	wantWarnings(t, mustParse(t, "f", file), []string{"f:1:18: budgets[0].name: orders: no policy names this budget"})
}

// TestAnOptionOfTheSameNumberIsNotOurs has an organization that chose the number for itself.
func TestAnOptionOfTheSameNumberIsNotOurs(t *testing.T) {
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

func TestNoMorePoliciesAreReadThanAClientCanHold(t *testing.T) {
	t.Parallel()
	set := apiSet(nil, map[string]*descriptorpb.MethodOptions{"Get": with(goodRetry(nil))})
	orders := apiOf(set).GetService()[0]
	for i := range 10_000 {
		method := proto.CloneOf(orders.GetMethod()[0])
		method.Name = new("Get" + strconv.Itoa(i))
		orders.Method = append(orders.Method, method)
	}
	_, err := describe(t, "{}", set)
	const want = "acme/v1/orders.proto: /acme.v1.Orders/Get9999: (stagger.policy.v1.retry): is one too many: no more than 10000 methods " +
		"and services may have a policy of their own; name the others in the policy file"
	if err == nil || err.Error() != want {
		t.Errorf("WithDescriptors = %v; want %s", err, want)
	}
	orders.Method = orders.GetMethod()[:10_000]
	if _, err := describe(t, "{}", set); err != nil {
		t.Errorf("10000 policies are refused: %v", err)
	}
	for _, m := range orders.GetMethod() {
		m.Options = with(new(policyv1.RetryPolicy))
	}
	_, err = describe(t, "{}", set)
	if fault, ok := errors.AsType[*policy.Error](err); !ok || len(fault.Diagnostics) != 100 {
		t.Errorf("the error lists not 100 problems, but %d lines", strings.Count(err.Error(), "\n")+1)
	}
}
