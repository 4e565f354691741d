// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	if got, want := decision.Reasons(), reasonConstants(t); !slices.Equal(got, want) {
		t.Errorf("%q; the constants are %q", got, want)
	}
}

// reasonConstants returns the constants of type Reason in the order of the source.
func reasonConstants(t *testing.T) (reasons []policy.Reason) {
	t.Helper()
	file := testkit.Must(parser.ParseFile(token.NewFileSet(), "reason.go", nil, parser.SkipObjectResolution))(t)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		kind, _ := spec.Type.(*ast.Ident)
		value, _ := spec.Values[0].(*ast.BasicLit)
		if kind == nil || kind.Name != "Reason" || value == nil {
			return true
		}
		text := testkit.Must(strconv.Unquote(value.Value))(t)
		reasons = append(reasons, policy.Reason(text))
		return true
	})
	return reasons
}
