// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// jsonFault says where and why a text is not JSON.
func jsonFault(file string, data []byte, err error) (position, string) {
	c := cursor{data: data, at: position{1, 1}}
	fault, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return c.at, err.Error()
	}
	offset := int(fault.Offset)
	if strings.HasPrefix(fault.Error(), "unexpected end") {
		return c.move(offset), err.Error()
	}
	at := c.move(offset - 1)
	switch {
	case data[c.offset] == '/' || data[c.offset] == '#':
		return at, err.Error() + "; JSON has no comments"
	case strings.HasSuffix(fault.Error(), "object key string") && data[c.offset] != '}' && !isJSON(file):
		return at, err.Error() + `; a text that begins with "{" is read as JSON, not YAML`
	}
	return at, err.Error()
}

// notYAML says where and why a text is not YAML.
func (ps *problems) notYAML(data []byte, err error) {
	fault, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		ps.at(position{1, 1}, "", "is not YAML: %v", err)
		return
	}
	message := fault.Message
	if fault.ContextMsg != "" {
		message = fault.ContextMsg + ": " + message
	}
	if begin := fault.ContextMark; begin.Line > 0 && begin != fault.Mark {
		message += fmt.Sprintf("; see line %d, column %d", begin.Line, begin.Column)
	}
	if isTab(data, fault.Mark.Line) {
		message += "; indent with spaces, not with tabs"
	}
	ps.at(position{fault.Mark.Line, fault.Mark.Column}, "", "is not YAML: %s", message)
}

// isTab reports whether a line is indented with a tab.
func isTab(data []byte, line int) bool {
	for range line - 1 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return bytes.HasPrefix(bytes.TrimLeft(data, " "), []byte("\t"))
}
