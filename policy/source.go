// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// source is the file that a config was read from. A nil source is a config written in Go, where
// every field was read and none has a place.
type source struct {
	file      string
	root      *node
	unread    map[string]bool   // fields whose values could not be read, and were reported
	above     map[string]bool   // fields with such a field in them
	inherited map[string]string // field that the file leaves out, to the one whose value it takes
}

// lose notes that a field could not be read: what it lacks then is no mistake of its own.
func (s *source) lose(field string) {
	s.unread[field] = true
	for up := parent(field); up != ""; up = parent(up) {
		s.above[up] = true
	}
}

// lost reports whether the field, or what it stands in, could not be read.
func (s *source) lost(field string) bool {
	if s == nil {
		return false
	}
	for ; field != ""; field = parent(field) {
		if s.unread[field] {
			return true
		}
	}
	return false
}

// whole reports whether the field and all that stands in it could be read.
func (s *source) whole(field string) bool { return s == nil || !s.above[field] && !s.lost(field) }

// written reports whether the file has the field: a zero in a config may stand for nothing.
func (s *source) written(field string) bool {
	if s == nil {
		return false
	}
	_, ok := s.root.find(field)
	return ok
}

// place fills in where a problem is, and how the file writes the value.
func (s *source) place(p *Diagnostic) {
	p.File = s.file
	if p.Line > 0 || s.root == nil {
		return
	}
	n, exact := s.root.find(p.Field)
	p.Line, p.Column = n.at.line, n.at.column
	switch {
	case !exact:
		p.Value, p.Message = "", "is required; "+p.Message
	case n.raw != "":
		p.Value = shorten(n.raw)
	}
}

// parent is the field that a field stands in; "" for the file.
func parent(field string) string {
	return field[:max(strings.LastIndexAny(field, ".["), 0)]
}
