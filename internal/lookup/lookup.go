// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup finds a method's entry in a service config.
package lookup

import (
	"maps"
	"strings"
)

// Table holds values for methods ("/service/method"), services ("/service/"), packages ("/package.*/") and
// everything ("/"). The zero value is empty. Once filled, it is safe for concurrent use.
type Table[T any] struct {
	byPath    map[string]*T
	byPackage map[string]*T
	fallback  *T
}

// packageEnd ends the path of a package. No service has such a name, so gRPC, which has no patterns, never
// matches it.
const packageEnd = ".*/"

// Package returns the package of a path that stands for the services of a package and its sub-packages, and "" for other paths.
func Package(path string) string {
	pkg, ok := strings.CutSuffix(strings.TrimPrefix(path, "/"), packageEnd)
	if !ok || strings.ContainsAny(pkg, "*/") {
		return ""
	}
	return pkg
}

// Split returns the service and the method of a path; the method of a service or a package is "", and everything has neither.
func Split(path string) (service, method string) {
	service, method, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return service, method
}

// Put sets the value of a path.
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

// Find returns the value of the method, else of its service, else of the longest package that contains it, else of
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

// Clone returns a copy of the table.
func (t *Table[T]) Clone() Table[T] {
	return Table[T]{byPath: maps.Clone(t.byPath), byPackage: maps.Clone(t.byPackage), fallback: t.fallback}
}
