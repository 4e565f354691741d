// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// keys are the keys of an object of a service config, with those of the objects, or lists of objects, under them.
type keys map[string]keys

// grpcKeys are the keys that gRPC for Go reads. It reads them in any case, as encoding/json does.
var grpcKeys = keys{
	"loadBalancingPolicy": nil,
	"loadBalancingConfig": nil,
	"methodConfig": {
		"name":                    {"service": nil, "method": nil},
		"waitForReady":            nil,
		"timeout":                 nil,
		"maxRequestMessageBytes":  nil,
		"maxResponseMessageBytes": nil,
		"retryPolicy": {
			"maxAttempts":          nil,
			"initialBackoff":       nil,
			"maxBackoff":           nil,
			"backoffMultiplier":    nil,
			"retryableStatusCodes": nil,
		},
		"hedgingPolicy": {"maxAttempts": nil, "hedgingDelay": nil, "nonFatalStatusCodes": nil},
	},
	"retryThrottling":   {"maxTokens": nil, "tokenRatio": nil},
	"healthCheckConfig": {"serviceName": nil},
}

// durations are the keys whose values are durations.
var durations = []string{"timeout", "initialBackoff", "maxBackoff"}

// halfPoint matches durations that have no digits on one side of the point, which gRPC for Go accepts.
var halfPoint = regexp.MustCompile(`^(-?)(?:\.([0-9]+)|([0-9]+)\.)s$`)

// codeLists are the keys whose values are lists of status codes.
var codeLists = []string{"retryableStatusCodes", "nonFatalStatusCodes"}

// respelling is a key or value that not every gRPC implementation understands, and its form in every implementation.
type respelling struct {
	at      document.Position
	was, is string
}

// respell returns a file with the spellings that every implementation understands, and what it changed, in the order of the file.
func respell(name string, data []byte) ([]byte, []respelling) {
	root := document.Parse(document.NewReport(name), data, document.Format{})
	if root == nil {
		return data, nil // policy.Parse says why
	}
	var list []respelling
	collect(root, grpcKeys, &list)
	slices.SortFunc(list, func(a, b respelling) int { return cmpPosition(a.at, b.at) })
	lines := bytes.SplitAfter(data, []byte("\n"))
	for _, r := range slices.Backward(list) { // so that the positions before it stay right
		line := lines[r.at.Line-1]
		begin := len(string([]rune(string(line))[:r.at.Column-1]))
		rest := strings.Replace(string(line[begin:]), r.was, r.is, 1) // behind a quote, if there is one
		lines[r.at.Line-1] = append(slices.Clone(line[:begin]), rest...)
	}
	return bytes.Join(lines, nil), list
}

// collect adds the respellings of an object, or of the objects of a list.
func collect(n *document.Node, known keys, list *[]respelling) {
	for _, item := range n.Items {
		collect(item, known, list)
	}
	for _, e := range n.Entries {
		key := e.Key
		for name := range known {
			if strings.EqualFold(name, e.Key) {
				key = name
			}
		}
		if key != e.Key {
			*list = append(*list, respelling{e.At, e.Key, key})
		}
		value := e.Value
		parts := halfPoint.FindStringSubmatch(value.Text)
		if parts != nil && value.Kind == document.Text && slices.Contains(durations, key) {
			whole := parts[1] + "0." + parts[2] + "s"
			if parts[2] == "" {
				whole = parts[1] + parts[3] + "s"
			}
			*list = append(*list, respelling{value.At, value.Text, whole})
		}
		if slices.Contains(codeLists, key) {
			collectCodes(value, list)
		}
		if under, ok := known[key]; ok {
			collect(value, under, list)
		}
	}
}

// collectCodes adds the respellings of a list of status codes, such as Unavailable and DeadlineExceeded.
func collectCodes(n *document.Node, list *[]respelling) {
	for _, item := range n.Items {
		code, ok := codename.Parse(item.Text)
		if ok && item.Kind == document.Text && item.Text != codename.Of(code) && item.Text != strconv.Itoa(int(code)) {
			*list = append(*list, respelling{item.At, item.Text, codename.Of(code)})
		}
	}
}

func cmpPosition(a, b document.Position) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Column - b.Column
}

// inOriginal moves the columns of a respelled file's errors to those of the file that the user has.
func inOriginal(err error, list []respelling) error {
	wrong, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return err
	}
	for i := range wrong.Diagnostics {
		d := &wrong.Diagnostics[i]
		column := d.Column
		for _, r := range list {
			if added := len(r.is) - len(r.was); r.at.Line == d.Line && r.at.Column+added < column {
				d.Column -= added
				column -= added
			}
		}
	}
	return err
}

// comment says what was changed.
func comment(list []respelling) string {
	if len(list) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("Spelled as every gRPC implementation reads it. Some implementations ignore or refuse these:")
	for _, r := range list {
		fmt.Fprintf(&text, "\n%s (line %d, now %s)", document.Shorten(r.was), r.at.Line, r.is)
	}
	return text.String()
}
