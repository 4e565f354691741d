// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// readJSON returns the tree of a JSON text, or nil if there is none.
func readJSON(r *Report, data []byte) *Node {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at, message := notJSON(r.file, data, err)
		r.ErrorAt(at, "", "is not JSON: %s", message)
		return nil
	}
	j := jsonReader{report: r, decoder: json.NewDecoder(bytes.NewReader(data)), cursor: cursor{data: data, at: Position{1, 1}}}
	j.decoder.UseNumber()
	n := j.readValue("", 0)
	if j.stopped {
		return nil
	}
	return n
}

// notJSON returns where and why a text is not JSON.
func notJSON(file string, data []byte, err error) (Position, string) {
	c := cursor{data: data, at: Position{1, 1}}
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return c.at, err.Error()
	}
	offset := int(syntax.Offset)
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		return c.move(offset), err.Error()
	}
	at := c.move(offset - 1)
	before := bytes.TrimRight(data[:c.offset], " \t\r\n")
	closes := data[c.offset] == '}' && strings.HasSuffix(syntax.Error(), "object key string") ||
		data[c.offset] == ']' && strings.HasSuffix(syntax.Error(), "beginning of value")
	switch {
	case closes && bytes.HasSuffix(before, []byte(",")):
		return at, err.Error() + "; remove the comma before it"
	case data[c.offset] == ',' && strings.HasSuffix(syntax.Error(), "after top-level value"):
		return at, err.Error() + "; remove it"
	case data[c.offset] == '/' || data[c.offset] == '#':
		return at, err.Error() + "; JSON has no comments"
	case strings.HasSuffix(syntax.Error(), "object key string") && data[c.offset] != '}' && !isJSON(file):
		return at, err.Error() + `; a text that begins with "{" is read as JSON, not YAML`
	}
	return at, err.Error()
}

// jsonReader reads a well-formed text. Its tokens have what encoding/json hides when it decodes into structs: positions and
// duplicate keys.
type jsonReader struct {
	report  *Report
	decoder *json.Decoder
	cursor  cursor
	limit   limit
	stopped bool
}

// nextToken reads a token.
func (j *jsonReader) nextToken() (token json.Token, at Position, raw string) {
	start := int(j.decoder.InputOffset())
	for start < len(j.cursor.data) && strings.IndexByte(" \t\r\n,:", j.cursor.data[start]) >= 0 {
		start++
	}
	token, err := j.decoder.Token()
	if err != nil { // cannot happen in a well-formed text
		j.stopReading(j.cursor.at, "is not JSON: "+err.Error())
		return nil, j.cursor.at, ""
	}
	at, raw = j.cursor.move(start), string(j.cursor.data[start:j.decoder.InputOffset()])
	if text, ok := token.(string); ok && hasHalf(text, raw) && !j.stopped {
		j.stopReading(at, "the text "+Shorten(raw)+` has half a character: \ud800 to \udfff mean one only in pairs`)
	}
	return token, at, raw
}

// hasHalf reports whether the text has an unpaired surrogate, which encoding/json silently replaces by U+FFFD.
func hasHalf(text, raw string) bool {
	const put = "\uFFFD"
	return strings.Count(text, put) > strings.Count(raw, put)+strings.Count(strings.ToLower(raw), `\ufffd`)
}

func (j *jsonReader) stopReading(at Position, message string) {
	j.report.ErrorAt(at, "", "%s", message)
	j.stopped = true
}

func (j *jsonReader) readValue(path string, depth int) *Node {
	token, at, raw := j.nextToken()
	n := &Node{At: at, Raw: raw}
	switch token := token.(type) {
	case json.Delim:
		n.Kind, n.Raw = Object, ""
		if token == '[' {
			n.Kind = List
		}
	case string:
		n.Kind, n.Text = Text, token
	case json.Number:
		n.Kind, n.Text = Number, token.String()
	case bool:
		n.Kind, n.Text = Bool, raw
	case nil:
		n.Kind = Null
	}
	if message := j.limit.countValue(depth, n.Text); message != "" && !j.stopped {
		j.stopReading(at, message)
	}
	if n.Kind == List || n.Kind == Object {
		j.inside(n, path, depth)
	}
	return n
}

// inside reads a list or an object up to its closing bracket.
func (j *jsonReader) inside(n *Node, path string, depth int) {
	for i := 0; !j.stopped && j.decoder.More(); i++ {
		if n.Kind == List {
			n.Items = append(n.Items, j.readValue(Item(path, i), depth+1))
		} else {
			j.addEntry(n, path, depth)
		}
	}
	if !j.stopped {
		j.nextToken()
	}
}

func (j *jsonReader) addEntry(n *Node, path string, depth int) {
	token, at, _ := j.nextToken()
	key, _ := token.(string)
	value := j.readValue(Under(path, key), depth+1)
	if first := n.AddEntry(Entry{Key: key, At: at, Value: value}); first != nil && !j.stopped {
		j.report.twice(at, Under(path, key), first.At)
	}
}

// twice reports a duplicate key.
func (r *Report) twice(at Position, field string, first Position) {
	r.ErrorAt(at, field, "is given twice, first at line %d, column %d; keep one", first.Line, first.Column)
}
