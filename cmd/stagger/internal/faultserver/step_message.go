// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

// What all messages of a request or file may have together, so that a typing error does not fill the memory.
const (
	maxMessages     = 100_000
	maxMessageBytes = 64 << 20
)

// replies are the messages of a step.
func (b *builder) replies(path string, messages []*faultserverv1.Message) [][]byte {
	list := make([][]byte, 0, len(messages))
	for i, m := range messages {
		list = append(list, b.message(document.Item(path, i), m)...)
	}
	return list
}

// message is what a message puts on the wire, as often as it is sent.
func (b *builder) message(path string, m *faultserverv1.Message) [][]byte {
	raw := m.GetRaw()
	if v, ok := m.GetForm().(*faultserverv1.Message_Json); ok {
		raw = b.json(path+".json", v.Json)
	}
	times := max(1, int(m.GetTimes()))
	if times > maxMessages-b.messages {
		b.report.Errorf(path, nil, "all messages together must be at most %d", maxMessages)
		return nil
	}
	if len(raw) > (maxMessageBytes-b.bytes)/times {
		b.report.Errorf(path, nil, "all messages together must have at most %d bytes (64 MiB)", maxMessageBytes)
		return nil
	}
	b.messages += times
	b.bytes += times * len(raw)
	list := make([][]byte, times)
	for i := range list {
		list[i] = raw
	}
	return list
}

// json is a response of the script's method.
func (b *builder) json(path string, v *structpb.Value) []byte {
	if strings.HasSuffix(b.method, "*") {
		b.report.Errorf(path, nil, "must be raw: only the script of one method knows what its responses are, and this one is for %s", document.Shorten(b.method))
		return nil
	}
	d := b.known.reply(b.method)
	if d == nil {
		b.report.Errorf(path, nil, "must be raw, or the server must be started with --descriptors: it does not know the method %s", document.Shorten(b.method))
		return nil
	}
	text, err := protojson.Marshal(v)
	if err != nil {
		b.report.Errorf(path, nil, "must be a JSON value: %s", detail(err))
		return nil
	}
	m := dynamicpb.NewMessage(d)
	if err := (protojson.UnmarshalOptions{Resolver: b.known}).Unmarshal(text, m); err != nil {
		b.report.Errorf(path, nil, "must be the JSON form of %s: %s", d.FullName(), detail(err))
		return nil
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		b.report.Errorf(path, nil, "must be a whole %s: %s", d.FullName(), detail(err))
	}
	return raw
}

// mark is what protobuf puts before its errors: its name, with a blank that changes, and a place in a text
// that nobody has seen.
var mark = regexp.MustCompile(`^proto:[\s\x{a0}]*(?:syntax error )?(\(line \d+:\d+\): )?`)

// detail is what protobuf says of a message in JSON, without the mark of its errors.
func detail(err error) string { return mark.ReplaceAllString(err.Error(), "") }
