// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/testkit"
)

// step is a script with one step, which begins at 3:9.
func step(text string) string { return "scripts:\n  - method: /a.B/C\n    steps: [" + text + "]\n" }

func TestScriptErrors(t *testing.T) {
	t.Parallel()
	known := allFiles()
	for _, row := range []struct{ text, want string }{
		{"", "1:1: is empty; a script file has keys such as scripts"},
		{"scipts: []\n", "1:1: scipts: unknown key; did you mean scripts?"},
		{"scripts: [{method: GetOrder, steps: [{}]}]\n", `1:20: scripts[0].method: GetOrder: must be "/package.Service/Method", "/package.Service/*" or "*"`},
		{"scripts: [{method: /a.B/C}]\n", "1:11: scripts[0].steps: is required; must have at least one step, such as {ok: {}}"},
		{step("7"), "3:13: scripts[0].steps[0]: 7: must be a map such as {ok: …, …}"},
		{step("{hang: {}, drop: {}}"), "3:24: scripts[0].steps[0].drop: is given together with hang: keep one of the two"},
		{step("{xyz: {}}"), "3:14: scripts[0].steps[0].xyz: unknown key; must be ok, fail, hang, drop, random, moves, delay, queue, " +
			"header, trailer, pushback, replies or times"},
		{step("{ok: 1}"), "3:18: scripts[0].steps[0].ok: 1: must be {}"},
		{step("{fail: {code: 17}}"), "3:27: scripts[0].steps[0].fail.code: 17: " +
			"must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"},
		{step("{fail: {code: [14]}}"), "3:27: scripts[0].steps[0].fail.code: " +
			"must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"},
		{step("{fail: {code: UNREACHABLE}}"), "3:27: scripts[0].steps[0].fail.code: UNREACHABLE: " +
			"must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"},
		{step("{fail: {}}"), "3:20: scripts[0].steps[0].fail.code: is required; must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"},
		{step("{pushback: 250}"), `3:24: scripts[0].steps[0].pushback: 250: must be a list: pushback: ["250"]`},
		{step("{pushback: soon}"), `3:24: scripts[0].steps[0].pushback: soon: must be a list: pushback: ["soon"]`},
		{step("{pushback: [100]}"), "3:25: scripts[0].steps[0].pushback[0]: 100: must be a string; put it in quotes"},
		{step("{random: {probability: half}}"), "3:36: scripts[0].steps[0].random.probability: half: must be a number"},
		{step("{random: {seed: 4294967296}}"), "3:29: scripts[0].steps[0].random.seed: 4294967296: must be a whole number from 0 to 4294967295"},
		{step(`{replies: [{raw: "$"}]}`), `3:30: scripts[0].steps[0].replies[0].raw: "$": must be bytes in base64`},
		{step("{replies: [{json: {[a]: 1}}]}"), "3:32: scripts[0].steps[0].replies[0].json: a key must be a string"},
		{step("{replies: [{json: null}]}"), "3:31: scripts[0].steps[0].replies[0].json: null: must be raw: a response in JSON needs a script for one method, " +
			"which the server knows by --descriptors, unlike /a.B/C"},
	} {
		_, err := parse("faults.yaml", []byte(row.text), known)
		if err == nil || err.Error() != "faults.yaml:"+row.want {
			t.Errorf("%s\ngot  %v\nwant faults.yaml:%s", row.text, err, row.want)
		}
	}
}

// allKeys has every key of a script.
const allKeys = `scripts:
- method: /acme.orders.v1.OrderService/GetOrder
  steps:
  - {ok: {}, delay: 1s, header: [{key: a, value: b}, {key: c-bin, binary: aGk=}], times: 2}
  - {ok: {}, trailer: [{key: a, value: b}], pushback: ["100"]}
  - {fail: {code: UNAVAILABLE, message: later, retryInfo: 2s}, queue: {workers: 1, serviceTime: 1s, length: 3}}
  - {random: {probability: 0.5, seed: 3, step: {hang: {}}}}
  - {replies: [{json: {name: x}, times: 2}, {raw: aGk=}]}
  - {moves: [{receive: 1}, {send: {raw: aGk=, times: 2}}, {pause: 1s}], drop: {}}
  - {moves: [{cut: {}}]}
- {method: "*", steps: [{fail: {code: 14}}]}
`

// One mistake makes one message.
func TestScript_OneMessage(t *testing.T) {
	t.Parallel()
	known := orders(t)
	testkit.Must(parse("faults.yaml", []byte(allKeys), known))(t)
	testkit.EachMistake(t, allKeys, func(what, text string) {
		if _, err := parse("faults.yaml", []byte(text), known); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v", what, err)
		}
	})
}

func TestScriptOfTheExample(t *testing.T) {
	t.Parallel()
	const file = "../../../../examples/faults/faults.yaml"
	data := testkit.Must(os.ReadFile(file))(t)
	if s, err := parse(file, data, orders(t)); err != nil || len(s) < 3 {
		t.Errorf("got %v, %v", s, err)
	}
}

func FuzzScript(f *testing.F) {
	for _, text := range []string{
		"scripts: []", step("{ok: {}}"), step("{replies: [{json: {a: [1, null, x]}}]}"), step("{random: {probability: 1, step: {hang: {}}}}"),
		step("{moves: [{receive: 1}, {cut: {}}]}"), "a: &a [*a]", "? [a]\n: b", "\x00",
	} {
		f.Add([]byte(text))
	}
	known := allFiles()
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parse("faults.yaml", data, known)
		if err == nil {
			for method, list := range got {
				for _, step := range list {
					if !patternForm.MatchString(method) || step.Err() != nil {
						t.Errorf("%s: taken, and then: %v", method, step.Err())
					}
				}
			}
			return
		}
		fault, ok := errors.AsType[*document.Error](err)
		if !ok {
			t.Fatalf("got %T", err)
		}
		for _, p := range fault.Diagnostics {
			if p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Errorf("a problem without a place: %+v", p)
			}
		}
	})
}

// orders returns the API of the examples, from its descriptor set.
func orders(t *testing.T) *protoregistry.Files {
	t.Helper()
	files := testkit.Must(cli.LoadDescriptors("../../../../examples/orders/orders.binpb"))(t)
	return allFiles(files)
}

func TestScriptMakesResponsesOfJSON(t *testing.T) {
	known := orders(t)
	stage(t, &control{known: known}, func(t *testing.T, s scene) {
		s.script(t, get, `{"replies": [{"json": {"name": "7"}}]}`)
		d := testkit.Must(known.FindDescriptorByName("acme.orders.v1.Order"))(t)
		order := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
		testkit.NoError(t, s.conn.Invoke(t.Context(), get, &emptypb.Empty{}, order))
		wantText(t, "name", order.Get(order.Descriptor().Fields().ByName("name")).String(), "7")
	})
}
