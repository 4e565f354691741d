// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command names lists the method names of packages that have more than two meanings: a search for such a name finds too much.
// Methods by which types implement the same interface have one meaning, and a method that only calls another of the same name
// has none of its own. Methods that interfaces of other modules ask for don't count.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const limit = 2

// standard are the methods of interfaces that packages implement without an import of the package that declares them.
var standard = strings.Fields("String Error Is As Unwrap Len Less Swap Push Pop Read Write Close MarshalJSON UnmarshalJSON")

func main() {
	log.SetFlags(0)
	log.SetPrefix("names: ")
	found, err := ambiguous("", os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Printf("%s has %d meanings\n\t%s\n", name, len(found[name]), strings.Join(found[name], "\n\t"))
	}
	if len(found) > 0 {
		log.Fatalf("%d method names have more than %d meanings", len(found), limit)
	}
}

// ambiguous returns the method names of packages with too many meanings, and where each of these is declared. The packages are
// found from a directory, "" for the working directory.
func ambiguous(dir string, patterns []string) (map[string][]string, error) {
	list, err := packages.Load(&packages.Config{
		Dir:  dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedImports,
	}, patterns...)
	if err == nil && packages.PrintErrors(list) > 0 {
		err = errors.New("the packages have errors")
	}
	if err != nil {
		return nil, err
	}
	l := lister{interfaces: map[*types.Interface]bool{}, implemented: map[types.Object][]*types.Interface{}, meanings: map[string][]meaning{}}
	for _, p := range list {
		l.findInterfaces(p, list)
	}
	for _, p := range list {
		l.findImplementations(p)
	}
	for _, p := range list {
		for _, file := range p.Syntax {
			if !ast.IsGenerated(file) {
				l.readMethods(p, file)
			}
		}
	}
	found := map[string][]string{}
	for name, of := range l.meanings {
		if len(of) > limit {
			for _, m := range of {
				found[name] = append(found[name], m.place)
			}
		}
	}
	return found, nil
}

type lister struct {
	interfaces  map[*types.Interface]bool // whether it is of another module
	implemented map[types.Object][]*types.Interface
	meanings    map[string][]meaning // by the method's name
}

// meaning is that of a method, and of the methods that implement the same interfaces.
type meaning struct {
	place      string
	interfaces []*types.Interface
}

// findInterfaces adds those that a package and its imports declare, and those that it writes without a name.
func (l *lister) findInterfaces(p *packages.Package, ours []*packages.Package) {
	add := func(t types.Type, foreign bool) {
		if i, ok := t.Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
			l.interfaces[i] = foreign
		}
	}
	for _, pkg := range append(p.Types.Imports(), p.Types) {
		foreign := !slices.ContainsFunc(ours, func(o *packages.Package) bool { return o.Types == pkg })
		for _, name := range pkg.Scope().Names() {
			if t, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok {
				add(t.Type(), foreign)
			}
		}
	}
	for expr, t := range p.TypesInfo.Types {
		if _, ok := expr.(*ast.InterfaceType); ok {
			add(t.Type, false)
		}
	}
}

// findImplementations notes the interfaces of each method of a package's types, be it the type's own or that of an embedded field.
func (l *lister) findImplementations(p *packages.Package) {
	for _, o := range p.TypesInfo.Defs {
		t, ok := o.(*types.TypeName)
		if !ok {
			continue
		}
		for i := range l.interfaces {
			if !types.Implements(t.Type(), i) && !types.Implements(types.NewPointer(t.Type()), i) {
				continue
			}
			for m := range i.Methods() {
				method, _, _ := types.LookupFieldOrMethod(t.Type(), true, m.Pkg(), m.Name())
				l.implemented[method] = append(l.implemented[method], i)
			}
		}
	}
}

func (l *lister) readMethods(p *packages.Package, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil && !delegates(n) {
				l.addMethod(p, n.Name)
			}
			return false
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, name := range m.Names {
					l.addMethod(p, name)
				}
			}
		}
		return true
	})
}

// delegates reports whether a method is nothing but a call of another one of its name.
func delegates(f *ast.FuncDecl) bool {
	if len(f.Body.List) != 1 {
		return false
	}
	var x ast.Expr
	switch s := f.Body.List[0].(type) {
	case *ast.ExprStmt:
		x = s.X
	case *ast.ReturnStmt:
		if len(s.Results) == 1 {
			x = s.Results[0]
		}
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == f.Name.Name
}

// addMethod joins the meanings with which the method shares an interface.
func (l *lister) addMethod(p *packages.Package, name *ast.Ident) {
	interfaces := l.implemented[p.TypesInfo.Defs[name]]
	foreign := func(i *types.Interface) bool { return l.interfaces[i] }
	if slices.Contains(standard, name.Name) || slices.ContainsFunc(interfaces, foreign) {
		return
	}
	m := meaning{place: p.Fset.Position(name.Pos()).String(), interfaces: interfaces}
	var others []meaning
	for _, o := range l.meanings[name.Name] {
		if slices.ContainsFunc(o.interfaces, func(i *types.Interface) bool { return slices.Contains(m.interfaces, i) }) {
			m = meaning{place: o.place, interfaces: slices.Concat(m.interfaces, o.interfaces)}
		} else {
			others = append(others, o)
		}
	}
	l.meanings[name.Name] = append(others, m)
}
