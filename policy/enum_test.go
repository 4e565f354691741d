// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// The constants of each kind are exactly the schema's enum values.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		schema protoreflect.Enum
		words  []string
	}{
		{policyv1.Jitter(0), document.Strings(
			backoff.JitterNone, backoff.JitterFull, backoff.JitterEqual, backoff.JitterDecorrelated, backoff.JitterProportional,
		)},
		{policyv1.Growth(0), document.Strings(backoff.GrowthExponential, backoff.GrowthLinear, backoff.GrowthFixed)},
		{policyv1.Mode(0), document.Strings(policy.ModeEnforce, policy.ModeObserve, policy.ModeOff)},
		{policyv1.Idempotency(0), []string{"ASSUME", "DECLARED", "NONE"}},
	} {
		if want := schemaNames(row.schema.Descriptor()); !slices.Equal(row.words, want) {
			t.Errorf("%T: %q; the schema has %q", row.schema, row.words, want)
		}
	}
}

// schemaNames returns the names of an enum's values, without their prefix and without the one for an absent key.
func schemaNames(ed protoreflect.EnumDescriptor) (names []string) {
	prefix := strings.TrimSuffix(string(ed.Values().Get(0).Name()), "UNSPECIFIED")
	for i := 1; i < ed.Values().Len(); i++ {
		names = append(names, strings.TrimPrefix(string(ed.Values().Get(i).Name()), prefix))
	}
	return names
}
