// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// scalar is the text of a value; "" if there is none, or it is not a single one.
func (f *fields) scalar(key, want string) string {
	n := f.get(key)
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.Value == "":
		f.wrong(key, "must be %s", want)
		return ""
	}
	return n.Value
}

func (f *fields) text(key string) string { return f.scalar(key, "a text") }

// name is a text that must be there.
func (f *fields) name(key string) string {
	text := f.text(key)
	if text == "" && !f.has(key) {
		f.wrong(key, "must be a text")
	}
	return text
}

func (f *fields) count(key string, fallback, least, most int) int {
	want := fmt.Sprintf("a whole number, %d to %d", least, most)
	text := f.scalar(key, want)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		f.wrong(key, "must be %s", want)
		return fallback
	}
	return n
}

// number is at least 0, or more than that if open, and at most high.
func (f *fields) number(key string, fallback, high float64, open bool) float64 {
	want := fmt.Sprintf("a number, 0 to %v", high)
	if open {
		want = fmt.Sprintf("a number, more than 0 and at most %v", high)
	}
	text := f.scalar(key, want)
	if text == "" {
		return fallback
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= high) || open && v == 0 {
		f.wrong(key, "must be %s", want)
		return fallback
	}
	return v
}

func (f *fields) duration(key string, fallback, low, high time.Duration) time.Duration {
	want := fmt.Sprintf(`a time with its unit, %v to %v: "250ms"`, low, high)
	text := f.scalar(key, want)
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		f.wrong(key, "must be %s", want)
		return fallback
	}
	return d
}

func (f *fields) flag(key string, fallback bool) bool {
	switch f.scalar(key, "true or false") {
	case "":
	case "true":
		return true
	case "false":
		return false
	default:
		f.wrong(key, "must be true or false")
	}
	return fallback
}

// word is the place of a word among those allowed.
func (f *fields) word(key string, words ...string) int {
	text := f.scalar(key, oneOf(words))
	if text == "" {
		return 0
	}
	i := slices.Index(words, text)
	if i < 0 {
		f.wrong(key, "must be %s", oneOf(words))
	}
	return max(i, 0)
}

func (f *fields) code(key string, fallback codes.Code) codes.Code {
	want := "a status code such as UNAVAILABLE, and not OK"
	text := f.scalar(key, want)
	if text == "" {
		return fallback
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if policy.CodeName(c) == text {
			return c
		}
	}
	f.wrong(key, "must be %s", want)
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
func (f *fields) items(key string) []*yaml.Node {
	n := f.get(key)
	switch {
	case n == nil:
		return nil
	case n.Kind != yaml.SequenceNode:
		f.wrong(key, "must be a list")
		return nil
	}
	return n.Content
}

// objects are the fields of each value of a list.
func (f *fields) objects(key string) []*fields {
	var list []*fields
	for i, n := range f.items(key) {
		if inside := f.object(f.under(key)+"["+strconv.Itoa(i)+"]", n); inside != nil {
			list = append(list, inside)
		}
	}
	return list
}
