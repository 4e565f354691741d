// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
)

// write returns a config as the text of a policy file, in JSON. The error has what can't be written as the file has it.
func write(c Config) ([]byte, error) {
	report := document.NewReport(newSource)
	var text bytes.Buffer
	w := writer{report: report, text: &text}
	w.value("", reflect.ValueOf(c))
	if err := report.Err(); err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("policy: %w", err) // a number that JSON doesn't have was reported before
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// writer writes Go values as a policy file has them.
type writer struct {
	report *document.Report
	text   *bytes.Buffer
}

// value writes v, which is at a path of the file.
func (w writer) value(path string, v reflect.Value) {
	switch x := v.Interface().(type) {
	case time.Duration:
		w.json(seconds(x))
		return
	case codes.Code:
		w.json(codename.Of(x))
		return
	case RetryPolicy:
		w.object(path, reflect.ValueOf(x.withDefaults()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		w.value(path, v.Elem())
	case reflect.Struct:
		w.object(path, v)
	case reflect.Slice:
		w.list(path, v)
	case reflect.Float64:
		w.number(path, v.Float())
	default: // a string, a bool or a whole number
		w.json(v.Interface())
	}
}

// object writes the fields of a struct that aren't zero as keys.
func (w writer) object(path string, v reflect.Value) {
	w.text.WriteByte('{')
	first := true
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		if !first {
			w.text.WriteByte(',')
		}
		first = false
		name := v.Type().Field(i).Name
		key := strings.ToLower(name[:1]) + name[1:]
		w.json(key)
		w.text.WriteByte(':')
		w.field(strings.TrimPrefix(path+"."+key, "."), v.Type(), v.Field(i))
	}
	w.text.WriteByte('}')
}

// field writes a field of a struct. Two fields aren't written as they are: names of methods, and a text in JSON.
func (w writer) field(path string, of reflect.Type, v reflect.Value) {
	switch {
	case of == reflect.TypeFor[MethodConfig]() && v.Type() == reflect.TypeFor[[]string]():
		w.names(path, v)
	case path == "loadBalancingConfig":
		text := v.String()
		if !json.Valid([]byte(text)) {
			w.report.Errorf(path, text, `must be JSON, such as [{"round_robin": {}}]`)
		}
		w.text.WriteString(text)
	default:
		w.value(path, v)
	}
}

func (w writer) list(path string, v reflect.Value) {
	w.text.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			w.text.WriteByte(',')
		}
		w.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
	w.text.WriteByte(']')
}

// names writes full names of methods.
func (w writer) names(path string, names reflect.Value) {
	w.text.WriteByte('[')
	for i := range names.Len() {
		name := names.Index(i).String()
		service, method := lookup.Split(name)
		if name != "/" && (service == "" || name != "/"+service+"/"+method || strings.Contains(method, "/")) {
			w.report.Errorf(fmt.Sprintf("%s[%d]", path, i), name, `must be "/service/method", "/service/" or "/"`)
		}
		if i > 0 {
			w.text.WriteByte(',')
		}
		w.value("", reflect.ValueOf(struct{ Service, Method string }{service, method}))
	}
	w.text.WriteByte(']')
}

// number writes a number. JSON has no infinite ones.
func (w writer) number(path string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.report.Errorf(path, f, "must be a finite number")
		f = 0
	}
	w.json(f)
}

func (w writer) json(v any) {
	text, err := json.Marshal(v)
	if err != nil { // no value of a config has such a type
		w.report.Errorf("", nil, "cannot be written: %v", err)
	}
	w.text.Write(text)
}

// seconds returns a duration as a policy file has it.
func seconds(d time.Duration) string {
	if d < 0 { // refused when the text is parsed; math.MinInt64 stays negative, and is refused as well
		return "-" + document.FormatDuration(-d)
	}
	return document.FormatDuration(d)
}
