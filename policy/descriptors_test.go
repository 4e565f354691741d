// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

const parcels = "testdata/descriptors/parcels.binpb"

func mustLoadDescriptors(t testing.TB, path string) *protoregistry.Files {
	t.Helper()
	return must.Get(policy.LoadDescriptors(path))(t)
}

func mustDescribe(t testing.TB, set *policy.Set, files ...*protoregistry.Files) *policy.Set {
	t.Helper()
	return must.Get(set.WithDescriptors(files...))(t)
}

// TestWithDescriptorsFileWins uses parcels.proto, where GetParcel has 5 attempts, BurnParcel 2, and the service 3.
func TestWithDescriptorsFileWins(t *testing.T) {
	t.Parallel()
	const (
		get  = "/acme.parcels.v1.ParcelService/GetParcel"
		list = "/acme.parcels.v1.ParcelService/ListParcels"
		none = "/acme.other.v1.Service/Get"
	)
	entry := func(name string) string {
		return "- name: [" + name + "]\n  retryPolicy: {maxAttempts: 4, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
	}
	const method = "{service: acme.parcels.v1.ParcelService, method: GetParcel}"
	for _, row := range []struct {
		name, entries string
		want          string // the policy of GetParcel, of ListParcels and of a method of another service
	}{
		{"nothing in the file", "  []\n", get + " 5, /acme.parcels.v1.ParcelService/ 3, none"},
		{"another service", entry("{service: a.B}"), get + " 5, /acme.parcels.v1.ParcelService/ 3, none"},
		{"the method", entry(method), get + " 4, /acme.parcels.v1.ParcelService/ 3, none"},
		{"the service", entry("{service: acme.parcels.v1.ParcelService}"), "/acme.parcels.v1.ParcelService/ 4, /acme.parcels.v1.ParcelService/ 4, none"},
		{"everything", entry("{}"), "/ 4, / 4, / 4"},
		{"the method and everything", entry(method) + entry("{}"), get + " 4, / 4, / 4"},
		{"the method, without retries", "- name: [" + method + "]\n", get + " 1, /acme.parcels.v1.ParcelService/ 3, none"},
		{"everything, without retries", "- name: [{}]\n", "/ 1, / 1, / 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			set := mustDescribe(t, mustParse(t, "f", "methodConfig:\n"+row.entries), mustLoadDescriptors(t, parcels))
			var got []string
			for _, m := range []string{get, list, none} {
				if p := set.Lookup(m); p == nil {
					got = append(got, "none")
				} else {
					got = append(got, p.Name()+" "+attempts(p))
				}
			}
			if strings.Join(got, ", ") != row.want {
				t.Errorf("the policies are %s; want %s", strings.Join(got, ", "), row.want)
			}
			use(t, set)
		})
	}
}

func TestWithDescriptorsOptionAsInFile(t *testing.T) {
	t.Parallel()
	set := mustDescribe(t, mustParse(t, "f", "{}"), mustLoadDescriptors(t, parcels))
	file := mustParse(t, "f", `
methodConfig:
- name: [{service: acme.parcels.v1.ParcelService, method: GetParcel}]
  retryPolicy:
    maxAttempts: 5
    initialBackoff: 0.02s
    maxBackoff: 1s
    backoffMultiplier: 2
    retryableStatusCodes: [UNAVAILABLE, RESOURCE_EXHAUSTED]
    jitter: EQUAL
    perCode: [{codes: [RESOURCE_EXHAUSTED], maxAttempts: 2, initialBackoff: 1s}]
`)
	const method = "/acme.parcels.v1.ParcelService/GetParcel"
	got, want := set.Lookup(method).Spec(), file.Lookup(method).Spec()
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("the option says\n%s\nthe file\n%s", g, w)
	}
	if got.Retry.Backoff.Initial != 20*time.Millisecond || got.Retry.PerCode[0].Backoff.Multiplier != 2 {
		t.Errorf("the option says %s", asJSON(t, got))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data := must.Get(json.MarshalIndent(v, "", " "))(t)
	return string(data)
}

func TestWithDescriptorsOrder(t *testing.T) {
	t.Parallel()
	base := mustParse(t, "f", "methodConfig: [{name: [{service: z.Z}]}]")
	set := mustDescribe(t, base, mustLoadDescriptors(t, parcels))
	var got []string
	for _, p := range set.Policies() {
		got = append(got, p.Name())
	}
	want := []string{
		"/z.Z/", "/acme.parcels.v1.ParcelService/",
		"/acme.parcels.v1.ParcelService/BurnParcel", "/acme.parcels.v1.ParcelService/GetParcel",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Policies are for %v; want %v", got, want)
	}
	if n := len(base.Policies()); n != 1 || base.Lookup("/acme.parcels.v1.ParcelService/GetParcel") != nil {
		t.Errorf("the set that descriptors were added to has changed: %d policies", n)
	}
	again := mustDescribe(t, set)
	if n := len(again.Policies()); n != len(want) || again.Lookup(want[2]) == nil {
		t.Errorf("descriptors that were given before are lost or doubled: %d policies", n)
	}
}

// apiSet returns a descriptor set with one API: a service acme.v1.Orders with the given options, and its methods' options by
// name. Options may be nil.
func apiSet(service *descriptorpb.ServiceOptions, methods map[string]*descriptorpb.MethodOptions) *descriptorpb.FileDescriptorSet {
	orders := &descriptorpb.ServiceDescriptorProto{Name: new("Orders"), Options: service}
	for _, name := range []string{"Create", "Get", "List"} {
		if options, ok := methods[name]; ok {
			orders.Method = append(orders.Method, &descriptorpb.MethodDescriptorProto{
				Name: &name, InputType: new(".acme.v1.Any"), OutputType: new(".acme.v1.Any"), Options: options,
			})
		}
	}
	api := &descriptorpb.FileDescriptorProto{
		Name: new("acme/v1/orders.proto"), Package: new("acme.v1"), Syntax: new("proto3"),
		Dependency:  []string{"stagger/policy/v1/options.proto"},
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service:     []*descriptorpb.ServiceDescriptorProto{orders},
	}
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var include func(f protoreflect.FileDescriptor)
	include = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			include(f.Imports().Get(i))
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	include(policyv1.File_stagger_policy_v1_options_proto)
	set.File = append(set.File, api)
	return set
}

// apiOf returns the file with the API in such a set.
func apiOf(set *descriptorpb.FileDescriptorSet) *descriptorpb.FileDescriptorProto {
	files := set.GetFile()
	return files[len(files)-1]
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	return must.Get(proto.Marshal(m))(t)
}

// goodRetry returns a valid policy, changed by edit.
func goodRetry(edit func(*policyv1.RetryPolicy)) *policyv1.RetryPolicy {
	r := &policyv1.RetryPolicy{
		MaxAttempts: 3, InitialBackoff: &durationpb.Duration{Nanos: 5e7}, MaxBackoff: &durationpb.Duration{Seconds: 1},
		BackoffMultiplier: 2, RetryableStatusCodes: []policyv1.StatusCode{policyv1.StatusCode_STATUS_CODE_UNAVAILABLE},
	}
	if edit != nil {
		edit(r)
	}
	return r
}

// with returns a method's options with a policy.
func with(r *policyv1.RetryPolicy) *descriptorpb.MethodOptions {
	o := new(descriptorpb.MethodOptions)
	proto.SetExtension(o, policyv1.E_Retry, r)
	return o
}

// describe parses a set and adds it to the policies of a file.
func describe(t *testing.T, file string, set *descriptorpb.FileDescriptorSet) (*policy.Set, error) {
	t.Helper()
	files := must.Get(policy.ParseDescriptors("api.binpb", marshal(t, set)))(t)
	return mustParse(t, "f", file).WithDescriptors(files)
}

// attempts returns the policy's maximum number of attempts.
func attempts(p *policy.Policy) string {
	if r := p.Spec().Retry; r != nil {
		return strconv.Itoa(r.MaxAttempts)
	}
	return "1"
}
