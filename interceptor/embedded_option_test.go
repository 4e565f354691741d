// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/grpc"
)

// Attempts get targets of their own for the options that write to the caller when an attempt ends, in their
// method after. A version of gRPC that has more of them needs more of us.
func TestEmbeddedOption_AllOfGRPC(t *testing.T) {
	t.Parallel()
	file, _ := runtime.FuncForPC(reflect.ValueOf(grpc.Header).Pointer()).FileLine(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if _, missing := os.Stat(file); missing != nil || err != nil || len(files) == 0 {
		t.Skipf("the sources of gRPC are not at %s", file)
	}
	var writers []string
	for _, file := range files {
		tree, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "after" || len(f.Body.List) == 0 {
				continue
			}
			if receiver, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				writers = append(writers, receiver.Name)
			}
		}
	}
	slices.Sort(writers)
	if want := []string{"HeaderCallOption", "PeerCallOption", "TrailerCallOption"}; !slices.Equal(writers, want) {
		t.Errorf("options that write: %q; want %q", writers, want)
	}
}
