// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// asked are the methods whose configs are compared.
var asked = []string{"/a.B/C", "/a.B/D", "/a.B/E", "/x.Y/Z", "/a.b/C"}

// grpcReads makes gRPC for Go parse a service config, and returns its error. It does not connect.
func grpcReads(t *testing.T, config string) (*grpc.ClientConn, error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///nowhere",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(config),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("no server") }))
	if err != nil {
		return nil, err
	}
	conn.Connect() // the config applies after the resolver's answer, which comes at once
	if err := conn.Close(); err != nil {
		t.Fatalf("%v", err)
	}
	return conn, nil
}

// alike compares the policies of gRPC and of the set for each method.
func alike(t *testing.T, conn *grpc.ClientConn, set *policy.Set) {
	t.Helper()
	for _, method := range asked {
		if theirs, ours := grpcs(conn, method), staggers(set, method); theirs != ours {
			t.Errorf("%s:\ngRPC reads %s\nwe read    %s", method, theirs, ours)
		}
	}
}

// grpcs returns gRPC's policy for a method as text.
func grpcs(conn *grpc.ClientConn, method string) string {
	var b strings.Builder
	mc := conn.GetMethodConfig(method)
	if mc.Timeout != nil {
		fmt.Fprintf(&b, "timeout %v, ", *mc.Timeout)
	}
	limits(&b, mc.WaitForReady, mc.MaxReqSize, mc.MaxRespSize)
	if r := mc.RetryPolicy; r != nil {
		fmt.Fprintf(&b, "%d attempts, %v to %v by %v after %v", r.MaxAttempts, r.InitialBackoff, r.MaxBackoff, r.BackoffMultiplier, slices.Sorted(maps.Keys(r.RetryableStatusCodes)))
	}
	return b.String()
}

// staggers returns the set's policy in the same form.
func staggers(set *policy.Set, method string) string {
	var b strings.Builder
	p := set.Lookup(method)
	if p == nil {
		return ""
	}
	s := compiled.Of(p)
	if s.Timeout > 0 {
		fmt.Fprintf(&b, "timeout %v, ", s.Timeout)
	}
	limits(&b, s.WaitForReady, s.MaxRequestMessageBytes, s.MaxResponseMessageBytes)
	if r := s.Retry; r != nil {
		fmt.Fprintf(&b, "%d attempts, %v to %v by %v after %v",
			min(r.MaxAttempts, 5), r.Backoff.Initial, r.Backoff.Max, r.Backoff.Multiplier, r.RetryableStatusCodes)
	}
	return b.String()
}

func limits(b *strings.Builder, waits *bool, request, response *int) {
	if waits != nil {
		fmt.Fprintf(b, "waits %v, ", *waits)
	}
	if request != nil {
		fmt.Fprintf(b, "requests to %d, ", *request)
	}
	if response != nil {
		fmt.Fprintf(b, "replies to %d, ", *response)
	}
}

// shared are the keys of a retry policy except the attempts and the codes.
const shared = `"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2`

func methodConfigs(entries ...string) string {
	return `{"methodConfig": [` + strings.Join(entries, ", ") + `]}`
}

// of returns an entry for a.B with the given keys.
func of(keys string) string { return methodConfigs(`{"name": [{"service": "a.B"}], ` + keys + `}`) }

func retryOf(keys string) string { return of(`"retryPolicy": {` + shared + `, ` + keys + `}`) }

const unavailable = `"maxAttempts": 3, "retryableStatusCodes": ["UNAVAILABLE"]`

func TestGRPCReadsTheSame(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"nothing":                    `{}`,
		"no entries":                 methodConfigs(),
		"an entry for a method":      methodConfigs(`{"name": [{"service": "a.B", "method": "C"}], "timeout": "1s"}`),
		"an entry for a service":     of(`"timeout": "1.5s"`),
		"an entry for everything":    methodConfigs(`{"name": [{}], "timeout": "2s"}`),
		"everything in other words":  methodConfigs(`{"name": [{"service": "", "method": ""}], "timeout": "2s"}`),
		"null names":                 methodConfigs(`{"name": [{"service": "a.B", "method": null}, {"service": null}], "timeout": "2s"}`),
		"an entry without names":     methodConfigs(`{"timeout": "2s"}`, `{"name": [], "timeout": "3s"}`, `{"name": [{"service": "a.B"}], "timeout": "4s"}`),
		"many names":                 methodConfigs(`{"name": [{"service": "a.B", "method": "C"}, {"service": "x.Y"}, {"service": "a.b"}], "timeout": "2s"}`),
		"the most specific, in turn": methodConfigs(`{"name": [{}], "timeout": "1s"}`, `{"name": [{"service": "a.B"}], "timeout": "2s"}`, `{"name": [{"service": "a.B", "method": "C"}], "timeout": "3s"}`),
		"the most specific, first":   methodConfigs(`{"name": [{"service": "a.B", "method": "C"}], "timeout": "3s"}`, `{"name": [{"service": "a.B"}], "timeout": "2s"}`, `{"name": [{}], "timeout": "1s"}`),
		"entries are not merged":     methodConfigs(`{"name": [{"service": "a.B"}], "retryPolicy": {`+shared+`, `+unavailable+`}}`, `{"name": [{"service": "a.B", "method": "C"}], "timeout": "1s"}`),
		"an entry without keys":      methodConfigs(`{"name": [{"service": "a.B", "method": "C"}]}`, `{"name": [{}], "timeout": "1s"}`),
		"nanoseconds":                of(`"timeout": "0.000000001s"`),
		"nine decimals":              of(`"timeout": "12.345678901s"`),
		"trailing zeros":             of(`"timeout": "1.500000000s"`),
		"a year":                     of(`"timeout": "31536000s"`),
		"waits":                      of(`"waitForReady": true`),
		"does not wait":              of(`"waitForReady": false`),
		"limits":                     of(`"maxRequestMessageBytes": 1024, "maxResponseMessageBytes": 2048`),
		"limits of nothing":          of(`"maxRequestMessageBytes": 0, "maxResponseMessageBytes": 0`),
		"the largest limits":         of(`"maxRequestMessageBytes": 4294967295, "maxResponseMessageBytes": 4294967295`),
		"a retry policy":             retryOf(unavailable),
		"two attempts":               retryOf(`"maxAttempts": 2, "retryableStatusCodes": ["UNAVAILABLE"]`),
		"more than five attempts":    retryOf(`"maxAttempts": 10, "retryableStatusCodes": ["UNAVAILABLE"]`),
		"codes by number":            retryOf(`"maxAttempts": 4, "retryableStatusCodes": [14, 8, "ABORTED"]`),
		"all codes":                  retryOf(`"maxAttempts": 4, "retryableStatusCodes": ["CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"]`),
		"a code twice":               retryOf(`"maxAttempts": 4, "retryableStatusCodes": ["UNAVAILABLE", 14]`),
		"a multiplier with decimals": of(`"retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1.6, ` + unavailable + `}`),
		"a multiplier below one":     of(`"retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 0.5, ` + unavailable + `}`),
		"an exponent":                of(`"retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1.5e1, ` + unavailable + `}`),
		"initial above max":          of(`"retryPolicy": {"initialBackoff": "2s", "maxBackoff": "1s", "backoffMultiplier": 1, ` + unavailable + `}`),
		"a hedging policy":           of(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE"]}`),
		"all keys of an entry":       of(`"waitForReady": true, "timeout": "1s", "maxRequestMessageBytes": 1, "maxResponseMessageBytes": 2, "retryPolicy": {` + shared + `, ` + unavailable + `}`),
		"throttling":                 `{"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`,
		"the channel's keys":         `{"loadBalancingPolicy": "round_robin", "loadBalancingConfig": [{"no_such_policy": {"a": [1, "b"]}}, {"round_robin": {}}], "healthCheckConfig": {"serviceName": "a.B"}, "connectionScaling": {"maxConnectionsPerSubchannel": 2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := grpcReads(t, config)
			if err != nil {
				t.Fatalf("gRPC refuses it, so that it is no service config: %v", err)
			}
			set, err := policy.Parse("f.json", []byte(config))
			if err != nil {
				t.Fatalf("Parse(%s) = %v", config, err)
			}
			alike(t, conn, set)
			plain, _ := lint.Export(methods.Describe(set), true)
			if conn, err = grpcReads(t, string(plain)); err != nil {
				t.Fatalf("gRPC refuses %s: %v", plain, err)
			}
			alike(t, conn, set)
		})
	}
}

func TestGRPCHedgingAndThrottling(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		of(`"hedgingPolicy": {"maxAttempts": 3}`):                                                                                           "3 after 0s past [] tokens <nil>",
		of(`"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0s"}`):                                                                     "2 after 0s past [] tokens <nil>",
		of(`"hedgingPolicy": {"maxAttempts": 9, "hedgingDelay": "1.5s", "nonFatalStatusCodes": [14, "INTERNAL"]}`):                          "9 after 1.5s past [Internal Unavailable] tokens <nil>",
		strings.Replace(of(`"hedgingPolicy": {"maxAttempts": 3}`), `{`, `{"retryThrottling": {"maxTokens": 1000, "tokenRatio": 1.25}, `, 1): "3 after 0s past [] tokens &{1000 1.25}",
	} {
		set, err := policy.Parse("f.json", []byte(config))
		if err != nil {
			t.Errorf("Parse(%s) = %v", config, err)
			continue
		}
		h := compiled.Of(set.Lookup("/a.B/C")).Hedge
		if got := fmt.Sprintf("%d after %v past %v tokens %v", h.MaxAttempts, h.HedgingDelay, h.NonFatalStatusCodes, compiled.OfSet(set).RetryThrottling); got != want {
			t.Errorf("%s is read as %s; want %s", config, got, want)
		}
	}
}

func TestGRPCIsLaxer(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"owner": "us"}`:   "owner: unknown key; must be loadBalancingPolicy, ",
		of(`"owner": "us"`): "methodConfig[0].owner: unknown key; must be name, ",
		strings.Replace(retryOf(unavailable), `"maxAttempts"`, `"maxRetries": 2, "maxAttempts"`, 1):     "maxRetries: unknown key; must be maxAttempts",
		of(`"timeout": "1s", "timeout": "2s"`):                                                          "timeout: is given twice, first at line 1",
		of(`"Timeout": "1s"`):                                                                           "Timeout: unknown key; did you mean timeout?",
		of(`"retryPolicy": {` + shared + `, ` + unavailable + `}, "hedgingPolicy": {"maxAttempts": 2}`): "is given together with retryPolicy: keep one of the two; gRPC for Go would ignore hedgingPolicy",
		retryOf(`"maxAttempts": 3, "retryableStatusCodes": ["UNAVAILABLE", "OK"]`):                      "retryableStatusCodes[1]: \"OK\": is not a failure",
		retryOf(`"maxAttempts": 3, "retryableStatusCodes": ["UNAVAILABLE", 0]`):                         "retryableStatusCodes[1]: 0: is not a failure",
		of(`"timeout": null`):                                          "timeout: null: has no value",
		of(`"timeout": "-1s"`):                                         "timeout: \"-1s\": must be more than 0s",
		of(`"timeout": ".5s"`):                                         "timeout: \".5s\": must be in seconds: \"0.5s\"",
		of(`"maxRequestMessageBytes": -1`):                             "maxRequestMessageBytes: -1: must not be negative",
		`{"retryThrottling": {"maxTokens": 0.5, "tokenRatio": 1}}`:     "maxTokens: 0.5: must be a whole number",
		`{"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.0001}}`: "tokenRatio: 0.0001: must be at least 0.001",
		of(`"hedgingPolicy": {"maxAttempts": 1}`):                      "maxAttempts: 1: must be at least 2",
	} {
		if _, err := grpcReads(t, config); err != nil {
			t.Errorf("gRPC refuses %s: %v", config, err)
		}
		if _, err := policy.Parse("f.json", []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%s) = %v; want %s", config, err, want)
		}
	}
}

// TestGRPCRefusesNoMore puts many values in the place of each value of a file, one at a time. gRPC must accept each file that Parse
// accepts, unless Parse warns that gRPC refuses it. TestGRPCKnowsPolicies has the exceptions.
func TestGRPCRefusesNoMore(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	candidates := []string{
		"null", "true", "false", "-1", "0", "1", "2", "1.5", "3.0", "1e1", "17", "4294967295", "4294967296", `"1"`, `""`, `"x"`, `"a.B"`, `"ö"`,
		`"0s"`, `"-0s"`, `"0.000000001s"`, `"00001.5s"`, `"9223372036s"`, `"UNAVAILABLE"`, `"unavailable"`, `"CANCELED"`, `"OBSERVE"`,
		"[]", "[null]", "[{}]", `[{"round_robin": {}}]`,
		`[{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}, {"pick_first": {}}]`,
		`["UNAVAILABLE", 8, "aborted"]`, "[14, 14]", `[{"service": "a.B"}]`, `[{"service": "a.B", "method": null}]`, "{}", `{"a": 1}`,
	}
	tree := allKeys(t)
	accepted, warned := 0, 0
	try := func(path string) {
		text := testkit.Must(json.Marshal(tree))(t)
		set, err := policy.Parse("f.json", text)
		if err != nil {
			return
		}
		refuses := slices.ContainsFunc(set.Warnings(), func(d policy.Diagnostic) bool {
			return strings.Contains(d.Message, "gRPC for Go refuses")
		})
		if _, err := grpcReads(t, string(text)); (err != nil) != refuses {
			t.Errorf("%s: %s\nParse warns of gRPC's refusal: %v; gRPC: %v", path, text, refuses, err)
		}
		accepted++
		if refuses {
			warned++
		}
	}
	eachChange(t, &tree, candidates, try)
	t.Logf("Parse accepts %d files, %d of them with a warning", accepted, warned)
	if accepted < 500 || warned < 3 {
		t.Errorf("%d files are accepted, %d of them with a warning; want more", accepted, warned)
	}
}

// allKeys returns a file with every key, as encoding/json decodes it. gRPC knows its spellings.
func allKeys(t *testing.T) any {
	t.Helper()
	whole := testkit.Must(os.ReadFile("testdata/good/all.yaml"))(t)
	spelt := strings.NewReplacer("resource_exhausted", "RESOURCE_EXHAUSTED", ", CANCELED", "").Replace(string(whole))
	var tree any
	testkit.NoError(t, json.Unmarshal([]byte(toJSON(t, []byte(spelt))), &tree))
	return tree
}

// eachChange calls try after each change to a tree: it puts each candidate, which is JSON, in the place of each value, and removes
// each key, one at a time.
func eachChange(t *testing.T, tree *any, candidates []string, try func(change string)) {
	t.Helper()
	var visit func(path string, v any, put func(any))
	visit = func(path string, v any, put func(any)) {
		for _, c := range candidates {
			var other any
			testkit.NoError(t, json.Unmarshal([]byte(c), &other))
			put(other)
			try(path + " = " + c)
		}
		put(v)
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				delete(v, key)
				try(path + " without " + key)
				visit(path+"."+key, inner, func(other any) { v[key] = other })
			}
		case []any:
			for i, inner := range v {
				visit(fmt.Sprintf("%s[%d]", path, i), inner, func(other any) { v[i] = other })
			}
		}
	}
	visit("", *tree, func(other any) { *tree = other })
}

// Only a program knows which load balancing policies it has, and what their settings mean.
func TestGRPCKnowsPolicies(t *testing.T) {
	t.Parallel()
	for _, config := range []string{
		`{"loadBalancingConfig": [{"no_such_policy": {}}]}`,
		`{"loadBalancingConfig": [{"pick_first": {"shuffleAddressList": "yes"}}, {"round_robin": {}}]}`,
	} {
		if _, err := grpcReads(t, config); err == nil {
			t.Errorf("gRPC takes %s", config)
		}
		if _, err := policy.Parse("f.json", []byte(config)); err != nil {
			t.Errorf("Parse(%s) = %v", config, err)
		}
	}
}

func TestGRPCRefusesChannelKeys(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"loadBalancingConfig": []}`:                                      "f.json:1:25: loadBalancingConfig: must list a load balancing policy",
		`{"loadBalancingConfig": [5]}`:                                     "f.json:1:26: loadBalancingConfig[0]: 5: must be a map with one key",
		`{"loadBalancingConfig": [{}]}`:                                    "f.json:1:26: loadBalancingConfig[0]: must be a map with one key",
		`{"loadBalancingConfig": [{"round_robin": {}, "pick_first": {}}]}`: "f.json:1:26: loadBalancingConfig[0]: must be a map with one key",
		`{"loadBalancingConfig": [{"pick_first": 5}]}`:                     "f.json:1:41: loadBalancingConfig[0].pick_first: 5: must be a map of the policy's settings",
		`{"healthCheckConfig": {"serviceName": 5}}`:                        "f.json:1:39: healthCheckConfig.serviceName: 5: must be the name of the service",
	} {
		if _, err := grpcReads(t, config); err == nil {
			t.Errorf("gRPC takes %s", config)
		}
		if _, err := policy.Parse("f.json", []byte(config)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%s) = %v; want %s", config, err, want)
		}
	}
}
