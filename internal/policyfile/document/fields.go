// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fields reads the keys of an object: one function names each key once, with the variable of its value. A value that does not fit
// is reported, and the variable keeps its value.
type Fields struct {
	*Report

	path  string
	node  *Node
	known []string // keys that were asked for
	left  map[string]string
	later []func()
}

// Read calls keys for the object n, and reports the keys that it does not name. It reports n if that is not an object.
func (r *Report) Read(path string, n *Node, keys func(*Fields)) {
	if n.Kind != Object {
		form := formOf(Known(keys))
		if form != "{}" {
			form = "a map such as " + form
		}
		r.Misfit(path, n, "must be "+form)
		return
	}
	f := &Fields{Report: r, path: path, node: n, known: make([]string, 0, 8)}
	keys(f)
	for _, e := range n.Entries {
		if !slices.Contains(f.known, e.Key) {
			f.unknown(e)
		}
	}
	for _, check := range f.later {
		check()
	}
}

// Later has a check of several keys, or of a missing one, run when all keys are read and the unknown ones are reported: a key that
// is misspelled or unreadable is not missing as well.
func (f *Fields) Later(check func()) { f.later = append(f.later, check) }

// formOf shows a map with the keys, or with the first one of many.
func formOf(keys []string) string {
	switch len(keys) {
	case 0:
		return "{}"
	case 1, 2:
		return "{" + strings.Join(keys, ": …, ") + ": …}"
	default:
		return "{" + keys[0] + ": …, …}"
	}
}

const mergeKeys = "merge keys are not supported; write the keys out"

// Known returns the keys that a function names.
func Known(keys func(*Fields)) []string {
	f := &Fields{Report: new(Report), node: new(Node)}
	keys(f)
	return f.known
}

// unknown reports a key. If it resembles a known one, that is not reported as missing as well.
func (f *Fields) unknown(e Entry) {
	merge, near := e.Key == "<<", Nearest(e.Key, f.known)
	ours := f.foreign(e.Key)
	near = cmp.Or(ours, near)
	f.ErrorAt(e.At, Under(f.path, e.Key), "unknown key; %s", Lazy(func() string {
		if merge {
			return mergeKeys
		}
		if instead := f.left[e.Key]; instead != "" {
			return instead
		}
		if ours != "" {
			return "write " + ours + f.ForeignHint(e.Key, e.Value)
		}
		if f.Elsewhere != nil && near == "" {
			if hint := f.Elsewhere(e.Key); hint != "" {
				return hint
			}
		}
		return Suggest(e.Key, f.known)
	}))
	f.Skip(Under(f.path, e.Key))
	for _, key := range f.known {
		if (merge || key == near) && f.node.Get(key) == nil {
			f.Skip(Under(f.path, key))
		}
	}
}

// foreign returns which key of this object, that it does not have yet, another library's stands for, or "".
func (f *Fields) foreign(key string) string {
	if f.Foreign == nil {
		return ""
	}
	for _, name := range f.Foreign(key) {
		if slices.Contains(f.known, name) && f.node.Get(name) == nil {
			return name
		}
	}
	return ""
}

// Left says what to write instead of a key that an earlier version had.
func (f *Fields) Left(key, instead string) {
	if f.left == nil {
		f.left = map[string]string{}
	}
	f.left[key] = instead
}

// OneOf names keys of which only one may be present, and returns the first of them that is, or "". The hint ends the message about
// a second one.
func (f *Fields) OneOf(hint string, keys ...string) string {
	first, present := "", ""
	for _, e := range f.node.Entries {
		switch {
		case !slices.Contains(keys, e.Key):
		case first == "":
			first, present = e.Key, e.Key
		default:
			f.ErrorAt(e.At, Under(f.path, e.Key), "is given together with %s: keep one of the two%s", first, hint)
			if slices.Index(keys, e.Key) < slices.Index(keys, present) {
				present = e.Key
			}
		}
	}
	return present
}

// Value returns the value of a key and its path, or nil if it is absent.
func (f *Fields) Value(key string) (n *Node, path string) {
	if !slices.Contains(f.known, key) {
		f.known = append(f.known, key)
	}
	if n = f.node.Get(key); n != nil {
		path = Under(f.path, key)
	}
	return n, path
}

// scalar returns the value of a key if it is of the kind, else nil. It reports a value of another kind.
func (f *Fields) scalar(key string, kind Kind, want string) (n *Node, path string) {
	n, path = f.Value(key)
	if n != nil && n.Kind != kind {
		f.notScalar(path, n, kind, want)
		return nil, path
	}
	return n, path
}

// notScalar reports a value that is not a scalar of the kind. Quotes are the remedy only for a scalar.
func (r *Report) notScalar(path string, n *Node, kind Kind, want string) {
	switch {
	case n.Kind == List:
		want += ", not a list"
	case n.Kind == Object:
		want += ", not a map"
	case kind == Text:
		want += Quotes(n)
	case n.Kind == Text && strings.HasPrefix(n.Raw, `"`):
		want += ", without quotes"
	}
	r.Misfit(path, n, want)
}

// Quotes returns the end of a message about a value that must be a string: a hint if quotes make it one, or "".
func Quotes(n *Node) string {
	if n.Kind == Number || n.Kind == Bool {
		return "; put it in quotes"
	}
	return ""
}

// Text reads a string.
func (f *Fields) Text(key string, to *string) {
	if n, _ := f.scalar(key, Text, "must be a string"); n != nil {
		*to = n.Text
	}
}

// TextOrNumber returns a string or a number as text, and whether there is one. want is the message about a value of another kind.
func (f *Fields) TextOrNumber(key, want string) (text string, given bool) {
	n, path := f.Value(key)
	switch {
	case n == nil:
		return "", false
	case n.Kind != Text && n.Kind != Number:
		f.Misfit(path, n, want)
		return "", false
	}
	return n.Text, true
}

// Bool reads true or false.
func (f *Fields) Bool(key string, to *bool) {
	if n, _ := f.scalar(key, Bool, "must be true or false"); n != nil {
		*to = n.IsTrue()
	}
}

// Number reads a number.
func (f *Fields) Number(key string, to *float64) {
	if n, path := f.Value(key); n != nil {
		if v, ok := f.number(path, n); ok {
			*to = v
		}
	}
}

// Int reads a whole number of at most 32 bits, which may be negative.
func (f *Fields) Int(key string, to *int) { f.IntBetween(key, to, 0, MaxInt) }

// MaxInt is the largest whole number in a document.
const MaxInt = math.MaxUint32

// IntBetween reads a whole number of at most 32 bits. The caller checks the bounds, which here are only for the message about a number
// with more bits.
func (f *Fields) IntBetween(key string, to *int, least, most int64) {
	n, path := f.scalar(key, Number, "must be a whole number")
	if n == nil {
		return
	}
	if !jsonInteger.MatchString(n.Text) {
		f.Misread(path, n, "must be a whole number, written without point, exponent or prefix")
		return
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil || v < math.MinInt32 || v > MaxInt {
		f.Misread(path, n, "must be a whole number from %d to %d", least, most)
		return
	}
	*to = int(min(v, math.MaxInt)) // no message and no call gets that far where an int has 32 bits
}

// Duration reads seconds with their unit.
func (f *Fields) Duration(key string, to *time.Duration) {
	if n, path := f.Value(key); n != nil {
		if v, ok := f.duration(path, n); ok {
			*to = v
		}
	}
}

// Optional reads a value by a method of f. The pointer stays nil if the key is absent.
func Optional[T any](key string, to **T, f *Fields, read func(f *Fields, key string, to *T)) {
	if n, _ := f.Value(key); n != nil {
		*to = new(T)
	}
	var none T
	read(f, key, cmp.Or(*to, &none))
}

// Word reads one of some words, in upper or lower case.
func Word[T ~string](f *Fields, key string, to *T, words ...T) {
	n, path := f.Value(key)
	if n == nil {
		return
	}
	list := Strings(words...)
	if n.Kind != Text {
		f.Misfit(path, n, "must be "+OneOf(list))
		return
	}
	for _, word := range words {
		if strings.EqualFold(n.Text, string(word)) {
			*to = word
			return
		}
	}
	f.Misread(path, n, "%s", Lazy(func() string { return Suggest(n.Text, list) }))
}

// Strings returns words as strings.
func Strings[T ~string](words ...T) []string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return list
}

// Object reads an object, and reports whether the key is present.
func (f *Fields) Object(key string, keys func(*Fields)) bool {
	n, path := f.Value(key)
	if n != nil {
		f.Read(path, n, keys)
	}
	return n != nil
}

// List calls item for each value of a list. form shows one of them, for messages: {service: …, method: …}.
func (f *Fields) List(key string, item func(path string, n *Node), form ...string) {
	n, path := f.Value(key)
	if n == nil {
		return
	}
	if n.Kind != List {
		f.Misfit(path, n, "must be a list"+listForm(key, n, form))
		return
	}
	for i, value := range n.Items {
		item(Item(path, i), value)
	}
}

// listForm returns the end of a message about n, which must be a list.
func listForm(key string, n *Node, form []string) string {
	switch {
	case len(form) > 0:
		return fmt.Sprintf(": %s: [%s]", key, form[0])
	case n.Kind == Object:
		return ", not a map"
	default:
		return ", in brackets or one entry a line after a dash"
	}
}

// Plain returns a value as encoding/json decodes it. It reports what JSON cannot represent.
func (r *Report) Plain(path string, n *Node) any {
	switch n.Kind {
	case Object:
		object := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			if e.Key == "<<" {
				r.ErrorAt(e.At, Under(path, e.Key), mergeKeys)
				continue
			}
			object[e.Key] = r.Plain(Under(path, e.Key), e.Value)
		}
		return object
	case List:
		list := make([]any, len(n.Items))
		for i, value := range n.Items {
			list[i] = r.Plain(Item(path, i), value)
		}
		return list
	case Number:
		v, _ := r.number(path, n)
		return v
	case Bool:
		return n.IsTrue()
	case Text:
		return n.Text
	default:
		return nil
	}
}

// The numbers of JSON, and the integers of gRFC A6. YAML has more forms, such as 0x10 and 1_000, that other readers do not
// share.
var (
	jsonNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	jsonInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
)

const notJSONNumber = "must be a finite decimal number as in JSON, such as 1.5"

// IsTrue returns the value of a boolean, which in YAML may also be True or TRUE.
func (n *Node) IsTrue() bool { return strings.EqualFold(n.Text, "true") }

func (r *Report) number(path string, n *Node) (float64, bool) {
	if n.Kind != Number {
		r.notScalar(path, n, Number, "must be a number")
		return 0, false
	}
	if !jsonNumber.MatchString(n.Text) {
		r.Misread(path, n, notJSONNumber)
		return 0, false
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(n.Text), "e")
	if err != nil || v == 0 && strings.ContainsAny(mantissa, "123456789") {
		r.Misread(path, n, "is beyond the range of a double")
		return 0, false
	}
	return v, true
}

// protoDuration is the JSON form of google.protobuf.Duration.
var protoDuration = regexp.MustCompile(`^-?[0-9]+(\.[0-9]{1,9})?s$`)

func (r *Report) duration(path string, n *Node) (time.Duration, bool) {
	const form = `must be seconds with at most nine decimals and an "s", such as "0.05s"`
	switch d, err := time.ParseDuration(n.Text); {
	case n.Kind == Number && jsonNumber.MatchString(n.Text):
		either := ""
		if ms, err := time.ParseDuration(n.Text + "ms"); err == nil && ms >= 100*time.Millisecond {
			either = fmt.Sprintf(`; milliseconds are "%s"`, FormatDuration(ms))
		}
		r.Misread(path, n, `must be in seconds, with the unit: "%ss"%s`, Shorten(n.Text), either)
	case n.Kind != Text:
		r.Misfit(path, n, form)
	case err == nil && protoDuration.MatchString(n.Text):
		return d, true
	case protoDuration.MatchString(n.Text):
		r.Misread(path, n, "must be at most 9223372036s, 292 years")
	case err == nil && d > 0:
		r.Misread(path, n, `must be in seconds: "%s"`, FormatDuration(d))
	default:
		r.Misread(path, n, form)
	}
	return 0, false
}

// FormatDuration returns a duration, which is not negative, in the form that documents use.
func FormatDuration(d time.Duration) string {
	text := fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "s"
}
