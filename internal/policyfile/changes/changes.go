// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package changes says how one set of policies differs from another, in the words of the policy file.
package changes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// Of returns the changes from one set to another: first the hash of the file, then what is new or gone, then each setting, such as
// "maxAttempts of GetOrder 3 → 2". Methods whose setting has changed in the same way share a text. Sets that mean the same,
// as after a change of a comment, differ only in the hash.
func Of(before, after *policy.Set) []string {
	d := differences{methods: map[change][]string{}}
	was, is := compiled.OfSet(before).Config, compiled.OfSet(after).Config
	methodsBefore, methodsAfter := methodsOf(before, was), methodsOf(after, is)
	short := shortNames(methodsBefore, methodsAfter)
	d.items("", methodsBefore, methodsAfter, func(name string) string { return short[name] })
	d.items("budget ", budgetsOf(was), budgetsOf(is), func(name string) string { return name })
	d.channel(before, after)
	was.Methods, is.Methods, was.Budgets, is.Budgets = nil, nil, nil, nil
	was.Mode, is.Mode = cmp.Or(was.Mode, "ENFORCE"), cmp.Or(is.Mode, "ENFORCE")
	d.compare("", "", reflect.ValueOf(was), reflect.ValueOf(is))

	var list []string
	if from, to := before.Hash(), after.Hash(); from != to {
		list = append(list, change{key: "hash", from: cmp.Or(from, none), to: cmp.Or(to, none)}.text(nil))
	}
	for _, c := range d.order {
		list = append(list, c.text(d.methods[c]))
	}
	return list
}

// none stands for a setting that is absent.
const none = "none"

// change is what has happened to a setting, or, without a key, to all of a method or budget.
type change struct{ key, from, to string }

// Values of change.to without a change.from.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

// listed is the number of methods that the text of a change names.
const listed = 3

// text returns the change as a text that names what it has happened to.
func (c change) text(of []string) string {
	if more := len(of) - listed; more > 0 {
		of = append(slices.Clone(of[:listed]), fmt.Sprintf("%d more", more))
	}
	words := []string{c.key, strings.Join(of, ", "), c.to}
	if c.key != "" && len(of) > 0 {
		words[1] = "of " + words[1]
	}
	if c.from != "" {
		words[2] = c.from + " → " + c.to
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// differences are the changes found so far.
type differences struct {
	order   []change
	methods map[change][]string // the methods or the budget of each
}

func (d *differences) add(c change, of string) {
	if _, known := d.methods[c]; !known {
		d.order = append(d.order, c)
		d.methods[c] = nil
	}
	if of != "" {
		d.methods[c] = append(d.methods[c], of)
	}
}

// items compares methods or budgets by their names.
func (d *differences) items(kind string, before, after map[string]any, title func(string) string) {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, was := before[name]; !was {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		of := kind + title(name)
		was, before := before[name]
		is, after := after[name]
		switch {
		case !before:
			d.add(change{to: added}, of)
		case !after:
			d.add(change{to: removed}, of)
		default:
			d.compare("", of, reflect.ValueOf(was), reflect.ValueOf(is))
		}
	}
}

// compare compares the values of a key, and of the keys inside it.
func (d *differences) compare(key, of string, before, after reflect.Value) {
	switch kind := before.Kind(); {
	case kind == reflect.Struct:
		for i := range before.NumField() {
			if f := before.Type().Field(i); f.IsExported() {
				d.compare(Key(before.Type(), f), of, before.Field(i), after.Field(i))
			}
		}
	case kind == reflect.Pointer && before.Type().Elem().Kind() == reflect.Struct:
		d.comparePointers(key, of, before, after)
	case kind == reflect.Interface: // a budget's config
		if was, is := kindOf(before), kindOf(after); was != is {
			d.add(change{"kind", was, is}, of)
		} else if !before.IsNil() {
			d.compare(key, of, before.Elem(), after.Elem())
		}
	case reflect.DeepEqual(before.Interface(), after.Interface()):
	case kind == reflect.Slice && before.Type().Elem().Kind() == reflect.Struct:
		d.add(change{key: key, to: changed}, of)
	default:
		d.add(change{key, valueText(before), valueText(after)}, of)
	}
}

func (d *differences) comparePointers(key, of string, before, after reflect.Value) {
	switch {
	case before.IsNil() && after.IsNil():
	case before.IsNil():
		d.add(change{key: key, to: added}, of)
	case after.IsNil():
		d.add(change{key: key, to: removed}, of)
	default:
		d.compare("", cmp.Or(of, key), before.Elem(), after.Elem())
	}
}

// channel compares the keys that gRPC itself implements, such as loadBalancingConfig.
func (d *differences) channel(before, after *policy.Set) {
	was, is := channelOf(before), channelOf(after)
	keys := slices.Sorted(maps.Keys(was))
	for key := range is {
		if was[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if string(was[key]) != string(is[key]) {
			d.add(change{key: key, to: changed}, "")
		}
	}
}

func channelOf(set *policy.Set) map[string]json.RawMessage {
	var keys map[string]json.RawMessage
	text := compiled.OfSet(set).Channel()
	_ = json.Unmarshal([]byte(text), &keys) // the set has encoded it
	return keys
}

// Key returns the key of a field in the policy file. Fields have the names of their keys, less what their types say.
func Key(in reflect.Type, f reflect.StructField) string {
	if key, known := keys[in.String()+"."+f.Name]; known {
		return key
	}
	if f.Anonymous {
		return ""
	}
	name := []rune(f.Name)
	name[0] = unicode.ToLower(name[0])
	return string(name)
}

var keys = map[string]string{
	"backoff.Config.Initial":    "initialBackoff",
	"backoff.Config.Max":        "maxBackoff",
	"backoff.Config.Multiplier": "backoffMultiplier",
	"spec.Code.Backoff":         "",
	"spec.Retry.Backoff":        "",
	"spec.Hedge.Quantile":       "hedgingQuantile.quantile",
	"spec.Hedge.MinDelay":       "hedgingQuantile.min",
	"spec.Hedge.MaxDelay":       "hedgingQuantile.max",
	"spec.Policy.Retry":         "retryPolicy",
	"spec.Policy.Hedge":         "hedgingPolicy",
}

func kindOf(config reflect.Value) string {
	if c, ok := reflect.TypeAssert[budget.Config](config); ok {
		return c.Kind()
	}
	return none
}

// valueText returns a value as the file would have it, or none.
func valueText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return none
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		if x == 0 {
			return none
		}
	case []codes.Code:
		return "[" + codename.List(x) + "]"
	}
	return cmp.Or(fmt.Sprint(v.Interface()), none)
}

// methodsOf returns the policies by their names, with what is left out at its default.
func methodsOf(set *policy.Set, c spec.Config) map[string]any {
	list := map[string]any{}
	for _, m := range c.Methods {
		for _, name := range m.Names {
			list[name] = compiled.Of(set.Lookup(name)).Policy
		}
	}
	return list
}

func budgetsOf(c spec.Config) map[string]any {
	list := map[string]any{}
	for _, b := range c.Budgets {
		list[b.Name] = b
	}
	return list
}

// shortNames returns a title for each name of both sets: a method without its service, unless another service has a method of that
// name.
func shortNames(sets ...map[string]any) map[string]string {
	titles, count := map[string]string{}, map[string]int{}
	for _, methods := range sets {
		for name := range methods {
			if titles[name] == "" {
				service, method := lookup.Split(name)
				titles[name] = cmp.Or(method, service, "all methods")
				count[titles[name]]++
			}
		}
	}
	for name, title := range titles {
		if count[title] > 1 {
			titles[name] = strings.Trim(name, "/")
		}
	}
	return titles
}
