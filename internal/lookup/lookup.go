// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup finds what a service config says of a method.
package lookup

import (
	"maps"
	"strings"
)

// Table holds what is said of methods ("/service/method"), of services ("/service/"), of packages ("/package.*/") and of
// everything ("/"). The zero value is empty. Once filled, it is safe for concurrent use.
type Table[T any] struct {
	byPath    map[string]*T
	byPackage map[string]*T
	fallback  *T
}

// packageEnd ends the path of a package. No service has such a name, so that gRPC, which knows no patterns, finds nothing
// by it.
const packageEnd = ".*/"

// Package is the package whose services, and those of its sub-packages, a path stands for; "" if it stands for something else.
func Package(path string) string {
	pkg, ok := strings.CutSuffix(strings.TrimPrefix(path, "/"), packageEnd)
	if !ok || strings.ContainsAny(pkg, "*/") {
		return ""
	}
	return pkg
}

// Put says v of a path.
func (t *Table[T]) Put(path string, v *T) {
	if path == "/" {
		t.fallback = v
		return
	}
	if t.byPath == nil {
		t.byPath = map[string]*T{}
	}
	t.byPath[path] = v
	if pkg := Package(path); pkg != "" {
		if t.byPackage == nil {
			t.byPackage = map[string]*T{}
		}
		t.byPackage[pkg] = v
	}
}

// Find returns what is said of a path: of the method, else of its service, else of the longest package that has it, else of
// everything, else nil. It does not allocate.
func (t *Table[T]) Find(path string) *T {
	if v := t.byPath[path]; v != nil {
		return v
	}
	if v := t.byPath[path[:strings.LastIndexByte(path, '/')+1]]; v != nil {
		return v
	}
	if len(t.byPackage) > 0 {
		if v := t.ofPackage(path); v != nil {
			return v
		}
	}
	return t.fallback
}

func (t *Table[T]) ofPackage(path string) *T {
	pkg, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for {
		dot := strings.LastIndexByte(pkg, '.')
		if dot < 0 {
			return nil
		}
		pkg = pkg[:dot]
		if v := t.byPackage[pkg]; v != nil {
			return v
		}
	}
}

// Clone returns a table that says the same.
func (t *Table[T]) Clone() Table[T] {
	return Table[T]{byPath: maps.Clone(t.byPath), byPackage: maps.Clone(t.byPackage), fallback: t.fallback}
}
