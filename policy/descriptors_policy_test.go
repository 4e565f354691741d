// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func TestOptionNamesBudget(t *testing.T) {
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

func TestOptionsBounded(t *testing.T) {
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

// TestOptionsIdempotency checks the idempotency of methods with options, and its overrides.
func TestOptionsIdempotency(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, want string }{
		{"{}", "GetParcel ListParcels"},
		{"idempotency: ASSUME", "GetParcel ListParcels SendParcel BurnParcel"},
		{"idempotency: DECLARED", "ListParcels"},
		{"idempotency: NONE", ""},
	} {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			set := mustDescribe(t, mustParse(t, "f", row.file), mustLoadDescriptors(t, parcels))
			compiled := decision.Compile(set)
			var safe []string
			for _, name := range []string{"GetParcel", "ListParcels", "SendParcel", "BurnParcel"} {
				method := "/acme.parcels.v1.ParcelService/" + name
				if compiled.Safe(compiled.Lookup(method), method) {
					safe = append(safe, name)
				}
			}
			if got := strings.Join(safe, " "); got != row.want {
				t.Errorf("safe are %q; want %q", got, row.want)
			}
		})
	}
}

func TestDeclaredIdempotent(t *testing.T) {
	t.Parallel()
	bare := mustParse(t, "f", "{}")
	set := mustDescribe(t, bare, mustLoadDescriptors(t, parcels))
	const list = "/acme.parcels.v1.ParcelService/ListParcels"
	if !set.DeclaredIdempotent(list) || set.DeclaredIdempotent("/acme.parcels.v1.ParcelService/SendParcel") {
		t.Error("DeclaredIdempotent does not say what the descriptors do, given ones or linked in")
	}
	if bare.DeclaredIdempotent(list) {
		t.Error("a set without the descriptors knows them")
	}
	for method, want := range map[string]bool{
		"/shop.Safe/Get": true, "/shop.Safe/Put": true, "/shop.Mixed/Pay": false, "/shop.Mixed/Add": false, "/shop.Mixed/None": false,
		"/shop.Any/Get":    false, // a message
		"/un.Known/Method": false, "shop.Safe": false, "": false,
	} {
		if got := set.DeclaredIdempotent(method); got != want {
			t.Errorf("%q: %v; want %v, by what is linked in", method, got, want)
		}
	}
}

func TestWithDescriptorsWarnings(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
budgets: [{name: used, ratio: {}}]
methodConfig:
- name: [{service: acme.parcels.v1.ParcelService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], budget: used}
`)
	wantWarnings(t, set, []string{"f:4:10: methodConfig: methods of 1 name without descriptors" + counted})
	wantWarnings(t, mustDescribe(t, set, mustLoadDescriptors(t, parcels)), []string{
		"f:4:10: methodConfig: 3 methods" + counted,
	})
}

// BenchmarkWithDescriptors measures the start of a program with a thousand services of three methods, each with a policy.
func BenchmarkWithDescriptors(b *testing.B) {
	one := apiSet(nil, map[string]*descriptorpb.MethodOptions{
		"Create": with(goodRetry(nil)), "Get": with(goodRetry(nil)), "List": with(goodRetry(nil)),
	})
	api := apiOf(one)
	for i := range 999 {
		more := proto.CloneOf(api.GetService()[0])
		more.Name = new(fmt.Sprintf("Orders%d", i))
		api.Service = append(api.Service, more)
	}
	files, err := policy.ParseDescriptors("api.binpb", marshal(b, one))
	if err != nil {
		b.Fatal(err)
	}
	set := mustParse(b, "f", "{}")
	for b.Loop() {
		if _, err := set.WithDescriptors(files); err != nil {
			b.Fatal(err)
		}
	}
}
