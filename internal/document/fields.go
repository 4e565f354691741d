// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Fields are the keys of an object. A function that names each key once, with the variable of its value, describes both
// how the object is read ([ReadFields]) and how it is written ([WriteFields]): without the keys whose values are the
// fallback. While they are read, a value that does not fit is reported, and the variable has the fallback.
type Fields struct {
	*Report

	Path    string
	Node    *Node // that is read, or written so far
	Writing bool
	asked   []string
}

// ReadFields reads an object. It reports a value that is none, and the keys that are not named.
func ReadFields(r *Report, path string, n *Node, keys func(*Fields)) {
	if n.Kind != Object {
		r.Misfit(path, n, "must be a map of keys")
		return
	}
	f := &Fields{Report: r, Path: path, Node: n}
	keys(f)
	for _, e := range n.Entries {
		if !slices.Contains(f.asked, e.Key) {
			f.ErrorAt(e.At, f.Under(e.Key), "unknown key; %s", Suggest(e.Key, f.asked))
		}
	}
}

// WriteFields writes an object; nil if it has no keys.
func WriteFields(keys func(*Fields)) *Node {
	f := &Fields{Node: &Node{Kind: Object}, Writing: true}
	if keys(f); len(f.Node.Entries) == 0 {
		return nil
	}
	return f.Node
}

// Under is the path of a key.
func (f *Fields) Under(key string) string { return Under(f.Path, key) }

// Get is the value of a key; nil if it is not there.
func (f *Fields) Get(key string) *Node {
	if !slices.Contains(f.asked, key) {
		f.asked = append(f.asked, key)
	}
	return f.Node.Get(key)
}

// Keys are those that are there, in their order.
func (f *Fields) Keys() []string {
	list := make([]string, 0, len(f.Node.Entries))
	for _, e := range f.Node.Entries {
		list = append(list, e.Key)
	}
	return list
}

// Has says whether the key is there, or is to be written.
func (f *Fields) Has(key string, write bool) bool {
	return f.Writing && write || !f.Writing && f.Get(key) != nil
}

// Put writes a value that is there.
func (f *Fields) Put(key string, n *Node) {
	if n != nil {
		f.Node.Put(Entry{Key: key, Value: n})
	}
}

// Wrong reports the value of a key, or that it is not there.
func (f *Fields) Wrong(key, format string, args ...any) {
	if !f.Writing {
		f.Errorf(f.Under(key), nil, format, args...)
	}
}

// Require reports keys that are not there.
func (f *Fields) Require(want string, keys ...string) {
	for _, key := range keys {
		if !f.Has(key, true) {
			f.Wrong(key, "%s", want)
		}
	}
}

// valueOf reads a key whose value is of a kind; nil, and an error if it is there, if it is not.
func (f *Fields) valueOf(key string, kind Kind, want string) *Node {
	n := f.Get(key)
	if n == nil || n.Kind == kind {
		return n
	}
	f.Misfit(f.Under(key), n, "must be "+want)
	return nil
}

// fieldOf writes a value that is not the fallback, or reads one: parse says whether the text is right.
func fieldOf[T comparable](f *Fields, key string, to *T, fallback T, kind Kind, want string, write func(T) string, parse func(string) (T, bool)) {
	if f.Writing {
		if *to != fallback {
			f.Put(key, &Node{Kind: kind, Text: write(*to)})
		}
		return
	}
	*to = fallback
	n := f.valueOf(key, kind, want)
	if n == nil {
		return
	}
	v, ok := parse(n.Text)
	if !ok {
		f.Misread(f.Under(key), n, "must be %s", want)
		return
	}
	*to = v
}

// Text is a text, or a number as it is written; "" if there is none.
func (f *Fields) Text(key string, to *string) {
	if f.Writing {
		if *to != "" {
			f.Put(key, &Node{Kind: Text, Text: *to})
		}
		return
	}
	switch n := f.Get(key); {
	case n == nil:
	case n.Text == "" || n.Kind == Null:
		f.Misfit(f.Under(key), n, "must be a string")
	default:
		*to = n.Text
	}
}

// Name is a text that must be there.
func (f *Fields) Name(key string, to *string) {
	f.Require("must be a string", key)
	f.Text(key, to)
}

// Int is a whole number.
func (f *Fields) Int(key string, to *int, fallback, least, most int) {
	fieldOf(f, key, to, fallback, Number, fmt.Sprintf("a whole number, %d to %d", least, most), strconv.Itoa, func(text string) (int, bool) {
		v, err := strconv.Atoi(text)
		return v, err == nil && v >= least && v <= most
	})
}

// Number is at least 0, or more than that if open, and at most high.
func (f *Fields) Number(key string, to *float64, fallback, high float64, open bool) {
	want := fmt.Sprintf("a number, 0 to %v", high)
	if open {
		want = fmt.Sprintf("a number, more than 0 and at most %v", high)
	}
	write := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	fieldOf(f, key, to, fallback, Number, want, write, func(text string) (float64, bool) {
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil && (v > 0 || v == 0 && !open) && v <= high
	})
}

// Duration is a time with its unit.
func (f *Fields) Duration(key string, to *time.Duration, fallback, low, high time.Duration) {
	want := fmt.Sprintf(`a time with its unit, %v to %v: "250ms"`, low, high)
	fieldOf(f, key, to, fallback, Text, want, time.Duration.String, func(text string) (time.Duration, bool) {
		v, err := time.ParseDuration(text)
		return v, err == nil && v >= low && v <= high
	})
}

// Bool is true or false.
func (f *Fields) Bool(key string, to *bool, fallback bool) {
	fieldOf(f, key, to, fallback, Bool, "true or false", strconv.FormatBool, func(text string) (bool, bool) {
		return (&Node{Text: text}).IsTrue(), true
	})
}

// Choice is one of some values by its name. The fallback needs no name.
func Choice[T comparable](f *Fields, key string, to *T, fallback T, want string, choices map[string]T) {
	name := func(v T) string {
		for text, choice := range choices {
			if choice == v {
				return text
			}
		}
		return ""
	}
	fieldOf(f, key, to, fallback, Text, want, name, func(text string) (T, bool) {
		v, ok := choices[text]
		return v, ok
	})
}

// Object is an object that may be there.
func (f *Fields) Object(key string, keys func(*Fields)) {
	if f.Writing {
		f.Put(key, WriteFields(keys))
	} else if n := f.Get(key); n != nil {
		ReadFields(f.Report, f.Under(key), n, keys)
	}
}

// Items are the values of a list that is read, with their paths.
func (f *Fields) Items(key string, read func(path string, n *Node)) {
	if n := f.valueOf(key, List, "a list"); n != nil {
		for i, item := range n.Items {
			read(Item(f.Under(key), i), item)
		}
	}
}

// PutList writes a list that has values.
func (f *Fields) PutList(key string, items []*Node) {
	if len(items) > 0 {
		f.Put(key, &Node{Kind: List, Items: items})
	}
}

// Objects is a list of objects.
func Objects[T any](f *Fields, key string, list *[]T, keys func(*T, *Fields)) {
	if f.Writing {
		items := make([]*Node, len(*list))
		for i, one := range *list {
			items[i] = WriteFields(func(f *Fields) { keys(&one, f) })
		}
		f.PutList(key, items)
		return
	}
	f.Items(key, func(path string, n *Node) {
		if n.Kind != Object {
			f.Misfit(path, n, "must be a map of keys")
			return
		}
		var one T
		ReadFields(f.Report, path, n, func(f *Fields) { keys(&one, f) })
		*list = append(*list, one)
	})
}

// OneOrMore is a list of objects, of which one may stand alone.
func OneOrMore[T any](f *Fields, key string, list *[]T, keys func(*T, *Fields)) {
	if n := f.Get(key); f.Writing && len(*list) != 1 || n != nil && n.Kind == List {
		Objects(f, key, list, keys)
		return
	}
	if f.Has(key, true) {
		var one T
		if f.Writing {
			one = (*list)[0]
		}
		f.Object(key, func(f *Fields) { keys(&one, f) })
		if !f.Writing && f.Get(key).Kind == Object {
			*list = append(*list, one)
		}
	}
}
