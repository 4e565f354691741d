// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Constants have the number and the spelling of the file's own.
func TestEnums(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		proto protoreflect.Enum
		zero  string
		name  func(protoreflect.EnumNumber) fmt.Stringer
	}{
		{policyv1.Jitter(0), "FULL", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Jitter(n) }},
		{policyv1.Growth(0), "EXPONENTIAL", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Growth(n) }},
		{policyv1.TransparentRetry(0), "ALLOW", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Permission(n) }},
		{policyv1.RefusedRetry(0), "ALLOW", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Permission(n) }},
		{policyv1.Chain(0), "ALLOW", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Chain(n) }},
		{policyv1.BudgetScope(0), "TARGET", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Scope(n) }},
		{policyv1.Idempotency(0), "BY_NAME", func(n protoreflect.EnumNumber) fmt.Stringer { return policy.Idempotency(n) }},
	} {
		values := row.proto.Descriptor().Values()
		prefix := strings.TrimSuffix(string(values.Get(0).Name()), "UNSPECIFIED")
		for i := range values.Len() {
			v := values.Get(i)
			want := strings.TrimPrefix(string(v.Name()), prefix)
			if v.Number() == 0 {
				want = row.zero
			}
			if got := row.name(v.Number()).String(); got != want {
				t.Errorf("%T(%d) = %s; want %s", row.name(0), v.Number(), got, want)
			}
		}
		if got := row.name(protoreflect.EnumNumber(values.Len())).String(); got != "INVALID" {
			t.Errorf("%T(%d) = %s; want INVALID", row.name(0), values.Len(), got)
		}
	}
}
