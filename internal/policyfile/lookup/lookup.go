// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup finds a method's entry in a service config.
package lookup

import "strings"

// Table holds values for methods ("/service/method"), services ("/service/") and everything ("/").
type Table[T any] map[string]*T

// Find returns the value of the method, else of its service, else of everything, else nil. It does not allocate.
func (t Table[T]) Find(path string) *T {
	if v := t[path]; v != nil {
		return v
	}
	if v := t[path[:strings.LastIndexByte(path, '/')+1]]; v != nil {
		return v
	}
	return t["/"]
}

// Split returns the service and the method of a path; the method of a service is "", and everything has neither.
func Split(path string) (service, method string) {
	service, method, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return service, method
}
