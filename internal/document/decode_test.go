// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/tools/must"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

func decode(text string, m proto.Message) error {
	n, r := parse(text)
	if n == nil {
		return r.Err()
	}
	document.Decoder{Report: r}.Decode("", n, m.ProtoReflect())
	return r.Err()
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got faultserverv1.Step
	must.Do(t, decode(`
times: 3
delay: 1.5s
random: {seed: 18446744073709551615, probability: 0.5, step: {hang: {}}}
replies: [{raw: "_-8"}, {raw: "/+8="}, {json: {a: [1, null, x, true]}}]`, &got))
	value := must.Get(structpb.NewValue(map[string]any{"a": []any{1, nil, "x", true}}))(t)
	raw := func() *faultserverv1.Message {
		return &faultserverv1.Message{Form: &faultserverv1.Message_Raw{Raw: []byte{0xff, 0xef}}}
	}
	want := &faultserverv1.Step{
		Times: 3, Delay: durationpb.New(1.5e9),
		End: &faultserverv1.Step_Random{Random: &faultserverv1.Random{
			Seed: 1<<64 - 1, Probability: 0.5, Step: &faultserverv1.Step{End: &faultserverv1.Step_Hang{Hang: &emptypb.Empty{}}},
		}},
		Replies: []*faultserverv1.Message{raw(), raw(), {Form: &faultserverv1.Message_Json{Json: value}}},
	}
	if !proto.Equal(&got, want) {
		t.Errorf("got %v; want %v", &got, want)
	}
}

func TestDecodeReports(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want string }{
		{`times: "3"`, `f:1:8: times: "3": must be a whole number, without quotes`},
		{"times: -1", "f:1:8: times: -1: must be a whole number from 0 to 4294967295"},
		{"random: {seed: 18446744073709551616}", "f:1:16: random.seed: 18446744073709551616: must be a whole number from 0 to 18446744073709551615"},
		{"replies: [{raw: 7}]", "f:1:17: replies[0].raw: 7: must be bytes in base64, in quotes"},
		{`replies: [{raw: "$"}]`, `f:1:17: replies[0].raw: "$": must be bytes in base64, in quotes`},
		{"hang: {a: 1}", "f:1:8: hang.a: unknown key; must be left out"},
		{"hang: 7", "f:1:7: hang: 7: must be {}"},
		{"hangs: {}", "f:1:1: hangs: unknown key; did you mean hang?"},
		{"replies: [{json: {<<: {}}}]", "f:1:19: replies[0].json.<<: merge keys are not supported; write the keys out"},
	} {
		if err := decode(row.text, new(faultserverv1.Step)); err == nil || err.Error() != row.want {
			t.Errorf("%s\ngot  %v\nwant %s", row.text, err, row.want)
		}
	}
}
