// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"strings"
)

// readJSON makes a tree of a JSON text; nil if there is none.
func readJSON(ps *problems, data []byte) *node {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at, fault := jsonFault(ps.file, data, err)
		ps.at(at, "", "is not JSON: %s", fault)
		return nil
	}
	r := jsonReader{ps: ps, dec: json.NewDecoder(bytes.NewReader(data)), cursor: cursor{data: data, at: position{1, 1}}}
	r.dec.UseNumber()
	n := r.value("", 0)
	if r.stopped {
		return nil
	}
	return n
}

// jsonReader reads a text that is known to be well-formed. What encoding/json hides from those who
// decode into structs, places and keys that stand twice, its tokens show.
type jsonReader struct {
	ps      *problems
	dec     *json.Decoder
	cursor  cursor
	limit   limit
	stopped bool
}

// next reads a token.
func (r *jsonReader) next() (token json.Token, at position, raw string) {
	start := int(r.dec.InputOffset())
	for start < len(r.cursor.data) && strings.IndexByte(" \t\r\n,:", r.cursor.data[start]) >= 0 {
		start++
	}
	token, err := r.dec.Token()
	if err != nil { // cannot happen in a well-formed text
		r.stop(r.cursor.at, "is not JSON: "+err.Error())
		return nil, r.cursor.at, ""
	}
	at, raw = r.cursor.move(start), string(r.cursor.data[start:r.dec.InputOffset()])
	if text, ok := token.(string); ok && isHalf(text, raw) && !r.stopped {
		r.stop(at, "the text "+shorten(raw)+` has half a character: \ud800 to \udfff mean one only in pairs`)
	}
	return token, at, raw
}

// isHalf reports whether a surrogate stands alone, for which encoding/json puts U+FFFD in silence.
func isHalf(text, raw string) bool {
	const put = "\uFFFD"
	return strings.Count(text, put) > strings.Count(raw, put)+strings.Count(strings.ToLower(raw), `\ufffd`)
}

func (r *jsonReader) stop(at position, message string) {
	r.ps.at(at, "", "%s", message)
	r.stopped = true
}

func (r *jsonReader) value(path string, depth int) *node {
	token, at, raw := r.next()
	n := &node{at: at, raw: raw}
	switch token := token.(type) {
	case json.Delim:
		n.kind, n.raw = object, ""
		if token == '[' {
			n.kind = list
		}
	case string:
		n.kind, n.text = text, token
	case json.Number:
		n.kind, n.text = number, token.String()
	case bool:
		n.kind, n.text = boolean, raw
	case nil:
		n.kind = null
	}
	if fault := r.limit.take(depth, n.text); fault != "" && !r.stopped {
		r.stop(at, fault)
	}
	if n.kind == list || n.kind == object {
		r.inside(n, path, depth)
	}
	return n
}

// inside reads a list or an object up to the bracket that closes it.
func (r *jsonReader) inside(n *node, path string, depth int) {
	for i := 0; !r.stopped && r.dec.More(); i++ {
		if n.kind == list {
			n.items = append(n.items, r.value(item(path, i), depth+1))
		} else {
			r.entry(n, path, depth)
		}
	}
	if !r.stopped {
		r.next()
	}
}

func (r *jsonReader) entry(n *node, path string, depth int) {
	token, at, _ := r.next()
	key, _ := token.(string)
	value := r.value(under(path, key), depth+1)
	if first := n.put(entry{key: key, at: at, value: value}); first != nil && !r.stopped {
		r.ps.twice(at, under(path, key), first.at)
	}
}
