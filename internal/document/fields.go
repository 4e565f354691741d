// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Fields are the keys of an object. One function names each key once, with the variable of its value. It describes both how
// the object is read ([ReadFields]) and how it is written ([WriteFields]), without keys whose values are the fallback. If a
// value that is read does not fit, it is reported, and the variable gets the fallback.
type Fields struct {
	*Report

	Path    string
	Node    *Node // the object that is read, or as much as is written
	Writing bool
	asked   []string
}

// ReadFields reads an object. It reports n if that is not an object, and all keys that the function does not name.
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

// WriteFields returns the object, or nil if it has no keys.
func WriteFields(keys func(*Fields)) *Node {
	f := &Fields{Node: &Node{Kind: Object}, Writing: true}
	if keys(f); len(f.Node.Entries) == 0 {
		return nil
	}
	return f.Node
}

// Under returns the path of a key.
func (f *Fields) Under(key string) string { return Under(f.Path, key) }

// Get returns the value of a key, or nil if it is absent.
func (f *Fields) Get(key string) *Node {
	if !slices.Contains(f.asked, key) {
		f.asked = append(f.asked, key)
	}
	return f.Node.Get(key)
}

// Keys returns the keys of the object, in order.
func (f *Fields) Keys() []string {
	list := make([]string, 0, len(f.Node.Entries))
	for _, e := range f.Node.Entries {
		list = append(list, e.Key)
	}
	return list
}

// Has reports whether the key is present or, when writing, whether it is to be written.
func (f *Fields) Has(key string, write bool) bool {
	return f.Writing && write || !f.Writing && f.Get(key) != nil
}

// Put adds a value, unless it is nil.
func (f *Fields) Put(key string, n *Node) {
	if n != nil {
		f.Node.AddEntry(Entry{Key: key, Value: n})
	}
}

// Wrong reports an error in the value of a key, or in its absence.
func (f *Fields) Wrong(key, format string, args ...any) {
	if !f.Writing {
		f.Errorf(f.Under(key), nil, format, args...)
	}
}

// Require reports the keys that are missing.
func (f *Fields) Require(want string, keys ...string) {
	for _, key := range keys {
		if !f.Has(key, true) {
			f.Wrong(key, "%s", want)
		}
	}
}

// valueOf returns the value of a key if it is of the kind, else nil. It reports a value of another kind.
func (f *Fields) valueOf(key string, kind Kind, want string) *Node {
	n := f.Get(key)
	if n == nil || n.Kind == kind {
		return n
	}
	f.Misfit(f.Under(key), n, "must be "+want)
	return nil
}

// fieldOf reads or writes a value. It does not write the fallback. parse reports whether the text is valid.
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

// Text reads or writes a string, or a number as written; "" if the key is absent.
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

// RequiredText reads or writes a string that is required.
func (f *Fields) RequiredText(key string, to *string) {
	f.Require("must be a string", key)
	f.Text(key, to)
}

// Int reads or writes a whole number.
func (f *Fields) Int(key string, to *int, fallback, least, most int) {
	fieldOf(f, key, to, fallback, Number, fmt.Sprintf("a whole number, %d to %d", least, most), strconv.Itoa, func(text string) (int, bool) {
		v, err := strconv.Atoi(text)
		return v, err == nil && v >= least && v <= most
	})
}

// Number reads or writes a number: at least 0, or more than 0 if open, and at most high.
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

// Duration reads or writes a time with its unit.
func (f *Fields) Duration(key string, to *time.Duration, fallback, low, high time.Duration) {
	want := fmt.Sprintf(`a time with its unit, %v to %v: "250ms"`, low, high)
	fieldOf(f, key, to, fallback, Text, want, time.Duration.String, func(text string) (time.Duration, bool) {
		v, err := time.ParseDuration(text)
		return v, err == nil && v >= low && v <= high
	})
}

// Bool reads or writes true or false.
func (f *Fields) Bool(key string, to *bool, fallback bool) {
	fieldOf(f, key, to, fallback, Bool, "true or false", strconv.FormatBool, func(text string) (bool, bool) {
		return (&Node{Text: text}).IsTrue(), true
	})
}

// Choice reads or writes one of several values by its name. The fallback needs no name.
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

// Object reads or writes an optional object.
func (f *Fields) Object(key string, keys func(*Fields)) {
	if f.Writing {
		f.Put(key, WriteFields(keys))
	} else if n := f.Get(key); n != nil {
		ReadFields(f.Report, f.Under(key), n, keys)
	}
}

// Items calls read for each value of a list, with its path.
func (f *Fields) Items(key string, read func(path string, n *Node)) {
	if n := f.valueOf(key, List, "a list"); n != nil {
		for i, item := range n.Items {
			read(Item(f.Under(key), i), item)
		}
	}
}

// PutList adds a list, unless it is empty.
func (f *Fields) PutList(key string, items []*Node) {
	if len(items) > 0 {
		f.Put(key, &Node{Kind: List, Items: items})
	}
}

// Objects reads or writes a list of objects.
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

// OneOrMore reads or writes a list of objects; a single object needs no list.
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
