// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// TestGoNamesFollowKeys compares the fields of Go's types with the keys of the file. Those with other names are listed here, and say why.
func TestGoNamesFollowKeys(t *testing.T) {
	t.Parallel()
	backoff := map[string]string{ // one type for policies and for codes, which says what is initial
		"initialBackoff": "Backoff.Initial", "maxBackoff": "Backoff.Max", "backoffMultiplier": "Backoff.Multiplier",
		"growth": "Backoff.Growth", "jitter": "Backoff.Jitter",
	}
	for _, row := range []struct {
		message proto.Message
		types   []any // the second one has keys that several messages share
		other   map[string]string
	}{
		{&policyv1.PolicyFile{}, []any{policy.Config{}}, map[string]string{
			"methodConfig":        "Methods",
			"loadBalancingPolicy": "", "loadBalancingConfig": "", "healthCheckConfig": "", "connectionScaling": "", // the channel's
		}},
		{&policyv1.MethodConfig{}, []any{policy.MethodConfig{}}, map[string]string{"name": "Names", "retryPolicy": "Retry", "hedgingPolicy": "Hedge"}},
		{&policyv1.RetryPolicy{}, []any{policy.RetrySpec{}, policy.Spec{}}, map[string]string{"perAttemptRecvTimeout": "PerAttemptTimeout"}},
		{&policyv1.CodePolicy{}, []any{policy.CodeSpec{}}, nil},
		{&policyv1.HedgingPolicy{}, []any{policy.HedgeSpec{}, policy.Spec{}}, map[string]string{"hedgingQuantile": "Quantile"}},
		{&policyv1.Budget{}, []any{policy.BudgetSpec{}}, map[string]string{"bucket": "Config", "throttle": "Config"}},
	} {
		m := row.message.ProtoReflect().Descriptor()
		for i := range m.Fields().Len() {
			key := m.Fields().Get(i).JSONName()
			name := strings.ToUpper(key[:1]) + key[1:]
			if other, ok := row.other[key]; ok {
				name = other
			} else if other, ok := backoff[key]; ok {
				name = other
			}
			if name != "" && !hasField(name, row.types) {
				t.Errorf("%s.%s: Go has no field %s", m.Name(), key, name)
			}
		}
	}
}

// hasField reports whether one of the types has a field, which may be one of its field's type.
func hasField(path string, types []any) bool {
	for _, v := range types {
		is, found := reflect.TypeOf(v), true
		for name := range strings.SplitSeq(path, ".") {
			if is.Kind() == reflect.Pointer {
				is = is.Elem()
			}
			f, ok := is.FieldByName(name)
			found = ok
			if !found {
				break
			}
			is = f.Type
		}
		if found {
			return true
		}
	}
	return false
}
