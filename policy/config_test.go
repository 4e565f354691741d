// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Each key of the file has a field in Go, but those that the comment of Config names.
func TestConfig_HasEveryKey(t *testing.T) {
	t.Parallel()
	notInGo := []string{
		"PolicyFile.loadBalancingPolicy", "PolicyFile.healthCheckConfig", "PolicyFile.connectionScaling", "RetryPolicy.perAttemptRecvTimeout",
	}
	schema := (&policyv1.PolicyFile{}).ProtoReflect().Descriptor()
	compareFields(t, schema, reflect.TypeFor[policy.Config](), notInGo)
}

func compareFields(t *testing.T, message protoreflect.MessageDescriptor, of reflect.Type, notInGo []string) {
	t.Helper()
	for i := range message.Fields().Len() {
		key := message.Fields().Get(i)
		name := key.JSONName()
		field, found := of.FieldByName(strings.ToUpper(name[:1]) + name[1:])
		if listed := slices.Contains(notInGo, string(message.Name())+"."+name); found == listed {
			t.Errorf("%s.%s: in Go %v, listed as missing %v", message.Name(), name, found, listed)
		}
		if !found || key.Message() == nil || !strings.HasPrefix(string(key.Message().FullName()), "stagger.") || key.Message().Name() == "Name" {
			continue
		}
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		compareFields(t, key.Message(), inner, notInGo)
	}
	for field := range of.Fields() {
		if key := strings.ToLower(field.Name[:1]) + field.Name[1:]; message.Fields().ByJSONName(key) == nil {
			t.Errorf("%s has no key %s", message.Name(), key)
		}
	}
}

// full has a value in each field.
func full() policy.Config {
	const limit = 4096
	zero := policy.Bucket{Size: new(0.0), PerSuccess: new(0.0), SlowCost: 1, Refund: new(0.0), RefundSize: new(0.0)}
	return policy.Config{
		MethodConfig: []policy.MethodConfig{
			{
				Name:                    []string{"/a.B/C", "/a.B/", "/"},
				WaitForReady:            new(false),
				Timeout:                 90 * time.Second,
				MaxRequestMessageBytes:  new(limit),
				MaxResponseMessageBytes: new(0),
				RetryPolicy: &policy.RetryPolicy{
					MaxAttempts: 7, InitialBackoff: time.Nanosecond, MaxBackoff: time.Hour, BackoffMultiplier: 1.5,
					RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.Aborted},
					Growth:               backoff.GrowthLinear, Jitter: backoff.JitterDecorrelated,
					PerAttemptTimeout: time.Second, OnAttemptTimeout: "RETRY", MessageTimeout: time.Minute, Budget: "some", MaxPushback: time.Minute,
					PerCode: []policy.PerCode{{
						Codes: []codes.Code{codes.Aborted}, MaxAttempts: 3, InitialBackoff: time.Second, MaxBackoff: 2 * time.Second,
						BackoffMultiplier: 3, Growth: backoff.GrowthExponential, Jitter: backoff.JitterEqual, OnlyWithServerDelay: true,
					}},
					Chain: "SUPPRESS", FirstRetry: "AT_ONCE", MaxConnectionWait: new(time.Duration(0)),
				},
				Idempotency: "ASSUME", IdempotencyKey: &policy.IdempotencyKey{Header: "x-key"}, Mode: policy.ModeObserve, Admission: "REFUSE",
			},
			{
				Name: []string{"/a.Hedged/"},
				HedgingPolicy: &policy.HedgingPolicy{
					MaxAttempts: 2, HedgingDelay: time.Millisecond, NonFatalStatusCodes: []codes.Code{codes.Internal},
					HedgingQuantile: &policy.HedgingQuantile{Quantile: 0.95, Min: time.Millisecond, Max: time.Second},
					Budget:          "throttled", MaxPushback: time.Second, MaxConnectionWait: new(time.Second),
				},
			},
			{Name: []string{"/a.Default/"}, RetryPolicy: &policy.RetryPolicy{}},
		},
		RetryThrottling:     &budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1},
		LoadBalancingConfig: `[{"round_robin": {}}]`,
		Budgets: []policy.Budget{
			{Name: "some", Scope: "PROCESS", Bucket: &zero},
			{Name: "throttled", Throttle: &budget.ThrottleConfig{MaxTokens: 5, TokenRatio: 1}},
		},
		Idempotency: "NONE", MaxWaiting: 7, Mode: policy.ModeEnforce, MaxAttemptsLimit: 9, DefaultTimeout: time.Minute,
	}
}

// A set's text, parsed again, is the same set. Zeros behind pointers are written, because they aren't the default.
func TestNew_Text(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.New(full()))(t)
	again := testkit.Must(policy.Parse("retry.json", []byte(set.String())))(t)
	if again.String() != set.String() || again.Hash() != set.Hash() {
		t.Errorf("%s\nparsed again is\n%s", set, again)
	}
	for _, want := range []string{`"size": 0,`, `"refund": 0,`, `"initialBackoff": "0.000000001s"`, `"maxBackoff": "3600s"`, `"waitForReady": false`, `"maxConnectionWait": "0s"`} {
		if !strings.Contains(set.String(), want) {
			t.Errorf("no %s in %s", want, set)
		}
	}
	if p := set.Lookup("/a.B/C"); p.MaxAttempts() != 7 || p.Timeout() != 90*time.Second || p.Budget() != "some" {
		t.Errorf("%d attempts, %v, budget %q", p.MaxAttempts(), p.Timeout(), p.Budget())
	}
	if p := set.Lookup("/a.Default/X"); p.MaxAttempts() != 3 {
		t.Errorf("%d attempts by default; want 3", p.MaxAttempts())
	}
}

// A bucket has the file's default in each field that isn't set.
func TestNew_Bucket(t *testing.T) {
	t.Parallel()
	slow := budget.Default()
	slow.Size, slow.SlowCost = 10, 3
	for _, row := range []struct {
		bucket policy.Bucket
		want   budget.BucketConfig
	}{
		{policy.Bucket{}, budget.Default()},
		{policy.Bucket{Size: new(10.0), SlowCost: 3}, slow},
		{
			policy.Bucket{Size: new(0.0), PerSuccess: new(0.0), Refund: new(0.0), RefundSize: new(0.0)},
			budget.BucketConfig{SlowCost: budget.Default().SlowCost},
		},
	} {
		set := testkit.Must(policy.New(policy.Config{Budgets: []policy.Budget{{Name: "some", Bucket: &row.bucket}}}))(t)
		if got := compiled.OfSet(set).Budgets[0].Config; got != row.want {
			t.Errorf("%s\nhas a bucket of %+v; want %+v", set, got, row.want)
		}
	}
}

// The text of a YAML file is the set's text.
func TestSet_String(t *testing.T) {
	t.Parallel()
	const text = "maxWaiting: 7 # calls\n"
	if set := testkit.Must(policy.Parse("retry.yaml", []byte(text)))(t); set.String() != text {
		t.Errorf("%q; want %q", set, text)
	}
}

// Bad values are errors that name the field and the value, as in a file, and never panics.
func TestNew_Errors(t *testing.T) {
	t.Parallel()
	named := func(p policy.RetryPolicy) policy.Config {
		return policy.Config{MethodConfig: []policy.MethodConfig{{Name: []string{"/a.B/C"}, RetryPolicy: &p}}}
	}
	for _, row := range []struct {
		config policy.Config
		want   string
	}{
		{named(policy.RetryPolicy{MaxAttempts: -1}), "methodConfig[0].retryPolicy.maxAttempts: -1: "},
		{named(policy.RetryPolicy{InitialBackoff: -time.Second}), "methodConfig[0].retryPolicy.initialBackoff: \"-1s\": "},
		{named(policy.RetryPolicy{InitialBackoff: math.MinInt64}), "methodConfig[0].retryPolicy.initialBackoff: "},
		{named(policy.RetryPolicy{BackoffMultiplier: math.NaN()}), "methodConfig[0].retryPolicy.backoffMultiplier: NaN: must be a finite number"},
		{named(policy.RetryPolicy{BackoffMultiplier: math.Inf(1)}), "methodConfig[0].retryPolicy.backoffMultiplier: +Inf: must be a finite number"},
		{named(policy.RetryPolicy{RetryableStatusCodes: []codes.Code{}}), "methodConfig[0].retryPolicy.retryableStatusCodes: "},
		{named(policy.RetryPolicy{RetryableStatusCodes: []codes.Code{codes.OK}}), "methodConfig[0].retryPolicy.retryableStatusCodes[0]: \"OK\": "},
		{named(policy.RetryPolicy{RetryableStatusCodes: []codes.Code{99}}), "methodConfig[0].retryPolicy.retryableStatusCodes[0]: "},
		{named(policy.RetryPolicy{Jitter: "SOME"}), "methodConfig[0].retryPolicy.jitter: \"SOME\": "},
		{named(policy.RetryPolicy{Budget: "none of ours"}), "methodConfig[0].retryPolicy.budget: \"none of ours\": "},
		{policy.Config{MethodConfig: []policy.MethodConfig{{Name: []string{"GetOrder"}}}}, "methodConfig[0].name[0]: \"GetOrder\": must be "},
		{policy.Config{MethodConfig: []policy.MethodConfig{{Name: []string{"/a.B/C/D"}}}}, "methodConfig[0].name[0]: \"/a.B/C/D\": must be "},
		{policy.Config{MethodConfig: []policy.MethodConfig{{Name: []string{"/"}, HedgingPolicy: &policy.HedgingPolicy{}}}}, "methodConfig[0].hedgingPolicy.maxAttempts: "},
		{policy.Config{LoadBalancingConfig: "round_robin"}, "loadBalancingConfig: \"round_robin\": must be JSON"},
		{policy.Config{LoadBalancingConfig: `[{"round_robin": {}}], "maxWaiting": 1`}, "loadBalancingConfig: "},
		{policy.Config{Budgets: []policy.Budget{{Name: "some"}}}, "budgets[0]"},
		{policy.Config{Budgets: []policy.Budget{{Name: "some", Bucket: &policy.Bucket{Size: new(-1.0)}}}}, "budgets[0].bucket.size: -1: "},
		{policy.Config{Budgets: []policy.Budget{{Name: "some", Bucket: &policy.Bucket{PerSuccess: new(math.NaN())}}}}, "budgets[0].bucket.perSuccess: NaN: must be a finite number"},
		{policy.Config{RetryThrottling: &budget.ThrottleConfig{TokenRatio: 0.1}}, "retryThrottling.maxTokens: "},
		{policy.Config{RetryThrottling: &budget.ThrottleConfig{MaxTokens: 10}}, "retryThrottling.tokenRatio: "},
		{policy.Config{MaxWaiting: -1}, "maxWaiting: -1: "},
	} {
		if set, err := policy.New(row.config); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, %v; want an error with %q", set, err, row.want)
		}
	}
}
