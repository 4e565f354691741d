// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// fields reads the keys of an object, and values within bounds: one function names each key once. If a value does not fit, it is
// reported, and the variable gets the fallback.
type fields struct {
	*document.Fields

	path string
	node *document.Node
}

// readFields reads an object. It reports n if that is not an object, and all keys that the function does not name.
func readFields(r *document.Report, path string, n *document.Node, keys func(*fields)) {
	if n.Kind != document.Object {
		r.Misfit(path, n, "must be a map of keys")
		return
	}
	r.Read(path, n, func(f *document.Fields) { keys(&fields{f, path, n}) })
}

// Under returns the path of a key.
func (f *fields) Under(key string) string { return document.Under(f.path, key) }

// Get returns the value of a key, or nil if it is absent.
func (f *fields) Get(key string) *document.Node {
	n, _ := f.Value(key)
	return n
}

// Keys returns the keys of the object, in order.
func (f *fields) Keys() []string {
	list := make([]string, 0, len(f.node.Entries))
	for _, e := range f.node.Entries {
		list = append(list, e.Key)
	}
	return list
}

// Has reports whether the key is present.
func (f *fields) Has(key string) bool { return f.Get(key) != nil }

// Wrong reports an error in the value of a key, or in its absence.
func (f *fields) Wrong(key, format string, args ...any) {
	f.Errorf(f.Under(key), nil, format, args...)
}

// Require has the keys that are missing reported.
func (f *fields) Require(want string, keys ...string) {
	for _, key := range keys {
		if !f.Has(key) {
			f.Later(func() { f.Wrong(key, "%s", want) })
		}
	}
}

// fieldOf reads a value. parse reports whether the text is valid.
func fieldOf[T comparable](f *fields, key string, to *T, fallback T, kind document.Kind, want string, parse func(string) (T, bool)) {
	*to = fallback
	n := f.Get(key)
	if n == nil {
		return
	}
	if n.Kind != kind {
		f.Misfit(f.Under(key), n, "must be "+want)
	} else if v, ok := parse(n.Text); ok {
		*to = v
	} else {
		f.Misread(f.Under(key), n, "must be %s", want)
	}
}

// RequiredText reads a string that is required.
func (f *fields) RequiredText(key string, to *string) {
	f.Require("must be a string", key)
	f.Text(key, to)
}

// Int reads a whole number.
func (f *fields) Int(key string, to *int, fallback, least, most int) {
	fieldOf(f, key, to, fallback, document.Number, fmt.Sprintf("a whole number, %d to %d", least, most), func(text string) (int, bool) {
		v, err := strconv.Atoi(text)
		return v, err == nil && v >= least && v <= most
	})
}

// Number reads a number: at least 0, or more than 0 if open, and at most high.
func (f *fields) Number(key string, to *float64, fallback, high float64, open bool) {
	want := fmt.Sprintf("a number, 0 to %v", high)
	if open {
		want = fmt.Sprintf("a number, more than 0 and at most %v", high)
	}
	fieldOf(f, key, to, fallback, document.Number, want, func(text string) (float64, bool) {
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil && (v > 0 || v == 0 && !open) && v <= high
	})
}

// Duration reads a time with its unit.
func (f *fields) Duration(key string, to *time.Duration, fallback, low, high time.Duration) {
	want := fmt.Sprintf(`a time with its unit, %v to %v: "250ms"`, low, high)
	fieldOf(f, key, to, fallback, document.Text, want, func(text string) (time.Duration, bool) {
		v, err := time.ParseDuration(text)
		return v, err == nil && v >= low && v <= high
	})
}

// choice reads one of several values by its name. The fallback needs no name.
func choice[T comparable](f *fields, key string, to *T, fallback T, want string, choices map[string]T) {
	fieldOf(f, key, to, fallback, document.Text, want, func(text string) (T, bool) {
		v, ok := choices[text]
		return v, ok
	})
}

// Object reads an optional object.
func (f *fields) Object(key string, keys func(*fields)) {
	if n := f.Get(key); n != nil {
		readFields(f.Report, f.Under(key), n, keys)
	}
}

// objects reads a list of objects.
func objects[T any](f *fields, key string, list *[]T, keys func(*T, *fields)) {
	f.List(key, func(path string, n *document.Node) {
		var one T
		readFields(f.Report, path, n, func(f *fields) { keys(&one, f) })
		*list = append(*list, one)
	})
}

// oneOrMore reads a list of objects; a single object needs no list.
func oneOrMore[T any](f *fields, key string, list *[]T, keys func(*T, *fields)) {
	switch n := f.Get(key); {
	case n == nil:
	case n.Kind == document.Object:
		var one T
		f.Object(key, func(f *fields) { keys(&one, f) })
		*list = append(*list, one)
	default:
		objects(f, key, list, keys)
	}
}
