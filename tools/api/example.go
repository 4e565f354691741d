// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"log"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// withoutExample lists the exported functions of a package that no Example in its directory uses.
func withoutExample(p *packages.Package) (missing []string) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(p.GoFiles[0]), "*_test.go"))
	if err != nil {
		log.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
				ast.Inspect(f, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if of, ok := s.X.(*ast.Ident); ok && of.Name == p.Name {
							used[s.Sel.Name] = true
						}
					}
					return true
				})
			}
		}
	}
	for _, name := range p.Types.Scope().Names() {
		o := p.Types.Scope().Lookup(name)
		if _, ok := o.(*types.Func); ok && o.Exported() && !forThisModule(o) && !used[name] {
			missing = append(missing, name)
		}
	}
	return missing
}
