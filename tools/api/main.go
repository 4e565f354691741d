// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command api lists the exported names of packages, with fields and methods, one a line, and counts them. It reads the
// module in the working directory. With -examples it lists the exported functions that no Example uses; with -since, what
// is not compatible with the packages of the same module in another directory.
package main

import (
	"flag"
	"fmt"
	"go/types"
	"log"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("api: ")
	count := flag.Bool("count", false, "print how many names each package has")
	examples := flag.Bool("examples", false, "list the exported functions that no Example of the package uses")
	since := flag.String("since", "", "list incompatible changes since the module in this `directory`")
	flag.Parse()
	list := load("", flag.Args())
	switch {
	case *examples:
		missing := false
		for _, p := range list {
			for _, name := range withoutExample(p) {
				missing = true
				fmt.Printf("%s.%s has no Example\n", p.PkgPath, name)
			}
		}
		if missing {
			os.Exit(1)
		}
		return
	case *since != "":
		printIncompatible(load(*since, flag.Args()), list)
		return
	}
	all := 0
	for _, p := range list {
		lines := names(p.Types)
		all += len(lines)
		if *count {
			fmt.Printf("%4d %s\n", len(lines), p.PkgPath)
			continue
		}
		for _, line := range lines {
			fmt.Printf("%s: %s\n", p.PkgPath, line)
		}
	}
	if *count {
		fmt.Printf("%4d names\n", all)
	}
}

// load reads packages of the module in a directory; "" is the working directory.
func load(dir string, patterns []string) []*packages.Package {
	list, err := packages.Load(&packages.Config{
		Dir:  dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedImports | packages.NeedDeps,
	}, patterns...)
	if err != nil {
		log.Fatal(err)
	}
	if packages.PrintErrors(list) > 0 {
		os.Exit(1)
	}
	return list
}

// names lists what users of a package can name.
func names(pkg *types.Package) []string {
	l := lister{qualify: types.RelativeTo(pkg)}
	for _, name := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(name); o.Exported() && !forThisModule(o) {
			l.object(o)
		}
	}
	slices.Sort(l.lines)
	return l.lines
}

// forThisModule reports whether a function or method is for packages of this module only: its signature has a type that programs can't name.
func forThisModule(o types.Object) bool {
	_, ok := o.(*types.Func)
	return ok && strings.Contains(o.Type().String(), "/internal/")
}

type lister struct {
	qualify types.Qualifier
	lines   []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) object(o types.Object) {
	t, ok := o.(*types.TypeName)
	if !ok {
		l.add("%s", types.ObjectString(o, l.qualify))
		return
	}
	if t.IsAlias() {
		l.add("type %s = %s", t.Name(), types.TypeString(types.Unalias(t.Type()), l.qualify))
	} else {
		l.add("type %s%s %s", t.Name(), parameters(t.Type()), kind(t.Type()))
	}
	l.members(t.Name(), t.Type())
}

// parameters are those of a generic type.
func parameters(t types.Type) string {
	named, ok := t.(*types.Named)
	if !ok || named.TypeParams().Len() == 0 {
		return ""
	}
	var list []string
	for p := range named.TypeParams().TypeParams() {
		list = append(list, p.Obj().Name()+" "+p.Constraint().String())
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// kind is what a type is made of, without the members that have lines of their own.
func kind(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	default:
		return u.String()
	}
}

// members lists the fields and methods that are the type's own, and those of the interface that it is.
func (l *lister) members(name string, t types.Type) {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		for m := range named.Methods() {
			if m.Exported() && !forThisModule(m) {
				l.add("method (%s) %s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), l.qualify), "func"))
			}
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				l.add("field %s.%s %s", name, f.Name(), types.TypeString(f.Type(), l.qualify))
			}
		}
	case *types.Interface:
		for m := range u.ExplicitMethods() {
			if m.Exported() {
				l.add("method %s.%s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), l.qualify), "func"))
			}
		}
	}
}
