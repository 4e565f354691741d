// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

// uploads returns the descriptors of acme.v1.Orders, whose method Create receives a stream.
func uploads(t *testing.T) *protoregistry.Files {
	t.Helper()
	set := apiSet(nil, map[string]*descriptorpb.MethodOptions{"Create": nil, "Get": nil})
	apiOf(set).GetService()[0].GetMethod()[0].ClientStreaming = new(true)
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Create is not hedged: lint warns in the entry that asks for it, if the method uses that entry.
func TestClientStreamsAreNotHedged(t *testing.T) {
	t.Parallel()
	const hedge = "hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s, nonFatalStatusCodes: [14]}"
	retry := func(more string) string {
		return "retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptTimeout: 1s" + more + "}"
	}
	const create = "/acme.v1.Orders/Create "
	for _, row := range [][3]string{
		{"{service: acme.v1.Orders, method: Create}", hedge, "warning f:1:104: methodConfig[0].hedgingPolicy: " + create +
			"is not hedged, since its client sends a stream: the next attempt follows a failure; write a retryPolicy for it, in an entry of its own"},
		{"{service: acme.v1.Orders, method: Create}", retry(", onAttemptTimeout: HEDGE"), "warning f:1:246: methodConfig[0].retryPolicy.onAttemptTimeout: HEDGE: " + create +
			"gives a slow attempt up for the next (RETRY), since its client sends a stream; write RETRY for it, in an entry of its own"},
		{"{service: acme.v1.Orders, method: Create}", retry(""), ""},
		{"{service: acme.v1.Orders, method: Create}", retry(", onAttemptTimeout: RETRY"), ""},
		{"{service: acme.v1.Orders, method: Get}", hedge, ""},
		{"{service: acme.v1.Orders}", hedge, "warning f:1:88: methodConfig[0].hedgingPolicy: " + create +
			"is not hedged, since its client sends a stream: the next attempt follows a failure; write a retryPolicy for it, in an entry of its own"},
	} {
		text := "methodConfig: [{name: [" + row[0] + "], idempotency: ASSUME, " + row[1] + "}]"
		var got []string
		for _, d := range policy.LintWith("f", []byte(text), inside.LintOptions{Descriptors: []*protoregistry.Files{uploads(t)}}) {
			got = append(got, string(d.Severity)+" "+d.String())
		}
		if want := slices.DeleteFunc([]string{row[2]}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
}

func TestClientStreams(t *testing.T) {
	t.Parallel()
	set := decision.Compile(mustDescribe(t, mustParse(t, "f", "{}"), uploads(t)))
	for method, want := range map[string]bool{
		"/acme.v1.Orders/Create": true, "/acme.v1.Orders/Get": false, "/acme.v1.Orders/Other": false, "/x.Y/Z": false, "": false,
	} {
		if set.ClientStreams(method) != want {
			t.Errorf("%s: %v", method, !want)
		}
	}
}
