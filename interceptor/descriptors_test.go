// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb" // linked in for badAPI and register

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
	"github.com/stagger-go/stagger/testserver"
)

const (
	parcels = "../policy/testdata/descriptors/parcels.binpb"

	getParcel  = "/acme.parcels.v1.ParcelService/GetParcel"   // 5 attempts: a method's option
	listParcel = "/acme.parcels.v1.ParcelService/ListParcels" // 3: its service's; NO_SIDE_EFFECTS
	sendParcel = "/acme.parcels.v1.ParcelService/SendParcel"  // the same, but not declared safe
)

func TestDescriptors_Policies(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]struct {
		attempts int
		reason   policy.Reason
	}{
		getParcel:                {5, policy.ReasonAttemptsExhausted},
		listParcel:               {3, policy.ReasonAttemptsExhausted},
		sendParcel:               {1, policy.ReasonNotIdempotent},
		"/acme.other.v1.Any/Get": {1, policy.ReasonNonRetryable},
	} {
		t.Run(method, func(t *testing.T) {
			play(t, policy.Config{}, func(t *testing.T, s scene) {
				s.On("*", testserver.Fail(codes.Unavailable, "down"))
				_, err := s.call(t.Context(), method)
				if n := len(s.Attempts()); n != want.attempts || reasonOf(err) != want.reason || status.Code(err) != codes.Unavailable {
					t.Errorf("%v, %s after %d attempts; want %s after %d", err, reasonOf(err), n, want.reason, want.attempts)
				}
			}, interceptor.WithDescriptors(parcels))
		})
	}
}

func TestDescriptors_IdempotencyLevel(t *testing.T) {
	t.Parallel()
	set := levels(t)
	retry := plain()
	alone := mustPolicy(t, policy.Spec{Retry: &retry})
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
	const want = "methodConfig: 1 method not declared idempotent" // DeleteOrder
	if len(j.notes) != 1 || !strings.HasPrefix(j.notes[0], want) || len(j.warnings) > 0 {
		t.Errorf("notes %q, warnings %q; want one note, %s, and no warning", j.notes, j.warnings, want)
	}
}

func TestDescriptors_OptionOrder(t *testing.T) {
	t.Parallel()
	described := interceptor.WithDescriptors(parcels)
	others := []interceptor.Option{quiet, interceptor.WithRandom(func() float64 { return 0 })}
	for at := range len(others) + 1 {
		r := mustNew(t, mustSet(t, policy.Config{MaxAttemptsLimit: 4}), slices.Insert(slices.Clone(others), at, described)...)
		cut := slices.ContainsFunc(r.State().Warnings, func(p policy.Diagnostic) bool { return p.Field == "maxAttempts of "+getParcel })
		if !cut {
			t.Errorf("as option %d, a policy of the API with 5 attempts is not cut to 4", at)
		}
	}
}

func TestDescriptors_Budget(t *testing.T) {
	play(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 2, TokenRatio: 0.1}}, func(t *testing.T, s scene) {
		s.On("*", testserver.Fail(codes.Unavailable, "down"))
		_, err := s.call(t.Context(), getParcel)
		if n := len(s.Attempts()); n != 1 || reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("%s after %d attempts; want budget_exhausted after 1", reasonOf(err), n)
		}
	}, interceptor.WithDescriptors(parcels))
}

func TestDescriptors_BadInput(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Config{})
	none := filepath.Join(t.TempDir(), "none.binpb")
	_, err := interceptor.New(set, interceptor.WithDescriptors(none))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), fmt.Sprintf("interceptor: WithDescriptors(%q): ", none)) ||
		!strings.Contains(err.Error(), "buf build -o") {
		t.Errorf("a file that is not there: %v", err)
	}
	_, err = interceptor.New(set, interceptor.WithDescriptors("../README.md"))
	if fault, ok := errors.AsType[*policy.Error](err); !ok || fault.Diagnostics[0].File != "../README.md" {
		t.Errorf("a text: %v", err)
	}
	path := writeSet(t, badAPI()...)
	_, err = interceptor.New(set, interceptor.WithDescriptors(path), quiet)
	const want = "bad.proto: /acme.bad.v1.Bad/Get: (stagger.policy.v1.retry).maxAttempts: 1: must be at least 2"
	if _, ok := errors.AsType[*policy.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a bad policy: %v; want %s", err, want)
	}
}

func TestDescriptors_GeneratedCode(t *testing.T) {
	const method = "/acme.linked.v1.Linked/Get"
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.On(method, testserver.Fail(codes.Unavailable, "down").Times(3), text("done"))
		if _, err := s.call(t.Context(), method); err != nil || s.waits() != "[1s 1s 1s]" {
			t.Errorf("%v after waits of %s; want 3 of 1s", err, s.waits())
		}
	})
}

// levels writes a descriptor set of the service of the other tests, where CreateOrder is IDEMPOTENT.
func levels(t *testing.T) string {
	t.Helper()
	method := func(name string, options *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".acme.orders.v1.Order"), OutputType: new(".acme.orders.v1.Order"), Options: options,
		}
	}
	return writeSet(t, &descriptorpb.FileDescriptorProto{
		Name: new("orders.proto"), Package: new("acme.orders.v1"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Order")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("OrderService"), Method: []*descriptorpb.MethodDescriptorProto{
			method("CreateOrder", &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_IDEMPOTENT.Enum()}),
			method("DeleteOrder", nil),
		}}},
	})
}

func writeSet(t *testing.T, files ...*descriptorpb.FileDescriptorProto) string {
	t.Helper()
	data := must.Get(proto.Marshal(&descriptorpb.FileDescriptorSet{File: files}))(t)
	path := filepath.Join(t.TempDir(), "api.binpb")
	must.Do(t, os.WriteFile(path, data, 0o600))
	return path
}

// shipped is the file of an API whose only method has a policy of so many attempts.
func shipped(service string, attempts uint32) *descriptorpb.FileDescriptorProto {
	options := new(descriptorpb.MethodOptions)
	proto.SetExtension(options, policyv1.E_Retry, &policyv1.RetryPolicy{
		MaxAttempts: attempts, InitialBackoff: durationpb.New(time.Second), MaxBackoff: durationpb.New(time.Second), BackoffMultiplier: 1,
		RetryableStatusCodes: []policyv1.StatusCode{policyv1.StatusCode_STATUS_CODE_UNAVAILABLE}, Jitter: policyv1.Jitter_JITTER_NONE,
	})
	low := strings.ToLower(service)
	return &descriptorpb.FileDescriptorProto{
		Name: new(low + ".proto"), Package: new("acme." + low + ".v1"), Syntax: new("proto3"),
		Dependency: []string{"stagger/policy/v1/options.proto", "google/protobuf/empty.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: &service, Method: []*descriptorpb.MethodDescriptorProto{{
			Name: new("Get"), InputType: new(".google.protobuf.Empty"), OutputType: new(".google.protobuf.Empty"), Options: options,
		}}}},
	}
}

// badAPI is a set with a policy that is wrong.
func badAPI() []*descriptorpb.FileDescriptorProto {
	var files []*descriptorpb.FileDescriptorProto
	for _, path := range []string{
		"google/protobuf/descriptor.proto", "google/protobuf/duration.proto", "google/protobuf/struct.proto",
		"google/protobuf/empty.proto", "stagger/policy/v1/policy.proto", "stagger/policy/v1/options.proto",
	} {
		f, err := protoregistry.GlobalFiles.FindFileByPath(path)
		if err != nil {
			panic(err)
		}
		files = append(files, protodesc.ToFileDescriptorProto(f))
	}
	return append(files, shipped("Bad", 1))
}

// The API that this program is linked with, registered as generated code does it.
var _ = register(shipped("Linked", 4))

func register(f *descriptorpb.FileDescriptorProto) error {
	file, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
	return err
}
