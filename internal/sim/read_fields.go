// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// fields are the keys of an object, which must each be asked for.
type fields struct {
	*reader

	path  string
	node  *document.Node
	asked []string
}

// object makes fields of a node; nil, and an error, if it is none.
func (r *reader) object(path string, n *document.Node) *fields {
	if n.Kind != document.Object {
		r.Misfit(path, n, "must be a map of keys")
		return nil
	}
	return &fields{reader: r, path: path, node: n}
}

func (f *fields) under(key string) string { return document.Under(f.path, key) }

// get is the value of a key; nil if it is not there.
func (f *fields) get(key string) *document.Node {
	f.ask(key)
	return f.node.Get(key)
}

// ask notes a key that may be there.
func (f *fields) ask(key string) {
	if !slices.Contains(f.asked, key) {
		f.asked = append(f.asked, key)
	}
}

func (f *fields) has(key string) bool {
	f.ask(key)
	return f.node.Get(key) != nil
}

// keys are those that the file has, in its order.
func (f *fields) keys() []string {
	list := make([]string, 0, len(f.node.Entries))
	for _, e := range f.node.Entries {
		list = append(list, e.Key)
	}
	return list
}

// wrong reports the value of a key, or that it is not there.
func (f *fields) wrong(key, format string, args ...any) {
	f.Errorf(f.under(key), nil, format, args...)
}

// end reports keys that nobody has asked for.
func (f *fields) end() {
	for _, e := range f.node.Entries {
		if !slices.Contains(f.asked, e.Key) {
			f.ErrorAt(e.At, f.under(e.Key), "unknown key; %s", document.Suggest(e.Key, f.asked))
		}
	}
}

// value is that of a key, if it is of a kind; nil, and an error if it is there, if not.
func (f *fields) value(key string, kind document.Kind, want string) *document.Node {
	n := f.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != kind {
		f.Misfit(f.under(key), n, "must be "+want)
		return nil
	}
	return n
}

// refuse reports a value that is of the right kind, and wrong.
func (f *fields) refuse(key string, n *document.Node, want string) {
	f.Misread(f.under(key), n, "must be %s", want)
}

// text is that of a key, numbers too; "" if there is none.
func (f *fields) text(key string) string {
	n := f.get(key)
	if n == nil {
		return ""
	}
	if n.Text == "" || n.Kind == document.Null {
		f.Misfit(f.under(key), n, "must be a text")
		return ""
	}
	return n.Text
}

// name is a text that must be there.
func (f *fields) name(key string) string {
	if !f.has(key) {
		f.wrong(key, "must be a text")
	}
	return f.text(key)
}

func (f *fields) count(key string, fallback, least, most int) int {
	want := fmt.Sprintf("a whole number, %d to %d", least, most)
	n := f.value(key, document.Number, want)
	if n == nil {
		return fallback
	}
	count, err := strconv.Atoi(n.Text)
	if err != nil || count < least || count > most {
		f.refuse(key, n, want)
		return fallback
	}
	return count
}

// number is at least 0, or more than that if open, and at most high.
func (f *fields) number(key string, fallback, high float64, open bool) float64 {
	want := fmt.Sprintf("a number, 0 to %v", high)
	if open {
		want = fmt.Sprintf("a number, more than 0 and at most %v", high)
	}
	n := f.value(key, document.Number, want)
	if n == nil {
		return fallback
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || !(v >= 0 && v <= high) || open && v == 0 {
		f.refuse(key, n, want)
		return fallback
	}
	return v
}

func (f *fields) duration(key string, fallback, low, high time.Duration) time.Duration {
	want := fmt.Sprintf(`a time with its unit, %v to %v: "250ms"`, low, high)
	n := f.value(key, document.Text, want)
	if n == nil {
		return fallback
	}
	d, err := time.ParseDuration(n.Text)
	if err != nil || d < low || d > high {
		f.refuse(key, n, want)
		return fallback
	}
	return d
}

func (f *fields) flag(key string, fallback bool) bool {
	n := f.value(key, document.Bool, "true or false")
	if n == nil {
		return fallback
	}
	return n.IsTrue()
}

// word is the place of a word among those allowed.
func (f *fields) word(key string, words ...string) int {
	n := f.value(key, document.Text, document.OneOf(words))
	if n == nil {
		return 0
	}
	i := slices.Index(words, n.Text)
	if i < 0 {
		f.refuse(key, n, document.OneOf(words))
	}
	return max(i, 0)
}

func (f *fields) code(key string, fallback codes.Code) codes.Code {
	const want = "a status code such as UNAVAILABLE, and not OK"
	n := f.value(key, document.Text, want)
	if n == nil {
		return fallback
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if policy.CodeName(c) == n.Text {
			return c
		}
	}
	f.refuse(key, n, want)
	return fallback
}

// inside are the fields of a value that is an object; nil if it is not there, or none.
func (f *fields) inside(key string) *fields {
	n := f.get(key)
	if n == nil {
		return nil
	}
	return f.object(f.under(key), n)
}

// items are the values of a list; nil if it is not there, or none.
func (f *fields) items(key string) []*document.Node {
	n := f.value(key, document.List, "a list")
	if n == nil {
		return nil
	}
	return n.Items
}

// oneOrMore are the fields of an object, or of each in a list.
func (f *fields) oneOrMore(key string) []*fields {
	if n := f.get(key); n != nil && n.Kind == document.List {
		return f.objects(key)
	}
	if in := f.inside(key); in != nil {
		return []*fields{in}
	}
	return nil
}

// objects are the fields of each value of a list.
func (f *fields) objects(key string) []*fields {
	var list []*fields
	for i, n := range f.items(key) {
		if inside := f.object(document.Item(f.under(key), i), n); inside != nil {
			list = append(list, inside)
		}
	}
	return list
}
