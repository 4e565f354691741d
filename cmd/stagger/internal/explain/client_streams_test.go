// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/policy"
)

// A call whose client sends a stream is not hedged, whatever its policy says: attempts follow failures.
func TestExplainClientStream(t *testing.T) {
	t.Parallel()
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: new("uploads.proto"), Package: new("acme"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Uploads"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("Put"), InputType: new(".acme.Any"), OutputType: new(".acme.Any"), ClientStreaming: new(true)},
			{Name: new("Get"), InputType: new(".acme.Any"), OutputType: new(".acme.Any")},
		}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.Uploads}]
  idempotency: ASSUME
  hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}
`))
	if err != nil {
		t.Fatal(err)
	}
	if set, err = set.WithDescriptors(files); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{"/acme.Uploads/Put": "3, one after the other", "/acme.Uploads/Get": "3, beside each other (hedging)"} {
		q := explain.Question{Method: method, Code: codes.Unavailable, Hang: true, MaxAttempts: 5}
		a := explain.Explain(decision.Compile(set), cli.API{}.Level, q, explain.Chances{0.5})
		if got := text(a, terminal.Style{}); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s", method, want, got)
		}
		if hangs := len(a.Sent) == 1; hangs != (method == "/acme.Uploads/Put") {
			t.Errorf("%s: attempts are sent at %v though none ends", method, a.Sent)
		}
	}
}
