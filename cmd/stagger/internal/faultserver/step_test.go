// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// watch opens a stream, sends messages and half-closes. It returns the answers and the end.
func (s scene) watch(t *testing.T, messages ...string) (string, error) {
	t.Helper()
	stream, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/acme.orders.v1.OrderService/Watch")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		_ = stream.SendMsg(wrapperspb.String(m)) // the server may have ended it
	}
	_ = stream.CloseSend()
	var got []string
	for {
		var m wrapperspb.StringValue
		if err := stream.RecvMsg(&m); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return strings.Join(got, " "), err
		}
		got = append(got, m.GetValue())
	}
}

func TestStep(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		s.script(t, get, `{
			"fail": {"code": "RESOURCE_EXHAUSTED", "retryInfo": "3s"},
			"header": [{"key": "Shard", "value": "7"}, {"key": "shard", "value": "8"}],
			"trailer": [{"key": "trace-bin", "binary": "AP8="}],
			"pushback": ["100", "+7"], "delay": "0.25s"}`)
		a := s.call(t.Context(), get)
		st := status.Convert(a.err)
		if st.Code() != codes.ResourceExhausted || len(st.Details()) != 1 {
			t.Fatalf("got %v with %v", st, st.Details())
		}
		if r, ok := st.Details()[0].(*errdetails.RetryInfo); !ok || r.GetRetryDelay().AsDuration() != 3*time.Second {
			t.Errorf("details %v; want the RetryInfo", st.Details())
		}
		wantText(t, "headers", strings.Join(a.header["shard"], " "), "7 8")
		wantText(t, "pushback", strings.Join(a.trailer["grpc-retry-pushback-ms"], " "), "100 +7")
		wantText(t, "binary trailer", strings.Join(a.trailer["trace-bin"], " "), "\x00\xff")
		if a.elapsed != 250*ms {
			t.Errorf("took %v; want 250ms", a.elapsed)
		}
	})
}

func TestStepMoves(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		// CgFh is StringValue("a"), CgFi of "b".
		s.script(t, "/acme.orders.v1.OrderService/*", `{
			"moves": [{"receive": 1}, {"send": {"raw": "CgFh", "times": 2}}, {"pause": "1s"}, {"receive": 0}, {"send": {}}],
			"replies": [{"raw": "CgFi"}],
			"fail": {"code": "DATA_LOSS"}
		}, {
			"moves": [{"send": {"raw": "CgFh"}}, {"cut": {}}]
		}`)
		start := time.Now()
		got, err := s.watch(t, "x", "y", "z")
		wantText(t, "messages", got, "a a  b")
		if took := time.Since(start); status.Code(err) != codes.DataLoss || took != time.Second {
			t.Errorf("got %v after %v; want DATA_LOSS after 1s", err, took)
		}
		got, err = s.watch(t)
		if got != "a" || status.Code(err) != codes.Unavailable {
			t.Errorf("got %q, %v; want one message and a cut", got, err)
		}
	})
}

func TestStepHangAndDrop(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		s.script(t, get, `{"hang": {}}, {"drop": {}, "replies": [{}]}, {"ok": {}}`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if a := s.call(ctx, get); status.Code(a.err) != codes.DeadlineExceeded || a.elapsed != time.Minute {
			t.Errorf("got %v after %v; want the deadline", a.err, a.elapsed)
		}
		if a := s.call(t.Context(), get); status.Code(a.err) != codes.Unavailable {
			t.Errorf("got %v; want UNAVAILABLE", a.err)
		}
	})
}

func TestStepRandom(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		const half = `{"random": {"probability": 0.5, "seed": 7, "step": {"fail": {"code": "UNAVAILABLE"}}}}`
		s.script(t, get, half)
		first := s.codesOf(t, get, 40)
		s.script(t, get, half)
		wantText(t, "the second run", s.codesOf(t, get, 40), first)
		if n := strings.Count(first, "Unavailable"); n < 10 || n > 30 {
			t.Errorf("%d of 40 fail; want about half", n)
		}
		s.script(t, get, `{"random": {"probability": 1}}`)
		wantText(t, "a random step without a step", s.codesOf(t, get, 1), "OK")
	})
}

func TestStepQueue(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		s.script(t, "*", `{"queue": {"workers": 1, "serviceTime": "1s", "length": 1}}`)
		results := make(chan answer, 3)
		for _, method := range []string{get, list, list} { // one queue for all methods of the script
			go func() { results <- s.call(t.Context(), method) }()
			time.Sleep(ms)
		}
		refused, first, second := <-results, <-results, <-results
		if status.Code(refused.err) != codes.ResourceExhausted || refused.elapsed != 0 {
			t.Errorf("the third got %v after %v; want a refusal at once", refused.err, refused.elapsed)
		}
		if first.elapsed != time.Second || second.elapsed != 1999*ms {
			t.Errorf("served after %v and %v; want 1s and 1.999s", first.elapsed, second.elapsed)
		}
	})
}

func TestStepErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ step, want string }{
		{`{"times": -1}`, "times: -1: must be at least 1"},
		{`{"times": 0}`, "times: 0: must be at least 1"},
		{`{"fail": {}}`, "fail.code: is required; must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"},
		{`{"fail": {"code": "17"}}`, `fail.code: "17": must be the name or the number of a status code, but not OK: UNAVAILABLE, 14`},
		{`{"fail": {"code": "014"}}`, `fail.code: "014": must be the name or the number of a status code, but not OK: UNAVAILABLE, 14`},
		{`{"random": {"probability": 1.5}}`, "random.probability: 1.5: must be at least 0 and at most 1"},
		{`{"random": {"probability": 1, "step": {"times": 2}}}`, "random.step: must be without times and random: they belong to the step around it"},
		{`{"random": {"step": {"random": {}}}}`, "random.step: must be without times and random: they belong to the step around it"},
		{`{"moves": [{"receive": -1}]}`, "moves[0].receive: -1: must be at least 0"},
		{`{"queue": {"workers": 1}}`, "queue.serviceTime: is required; must be more than 0s"},
		{`{"delay": "315576000000s"}`, `delay: "315576000000s": must be at most 9223372036s, 292 years`},
		{`{"header": [{"key": "a b"}]}`, `header[0].key: "a b": must be letters, digits, -, _ and .`},
		{`{"header": [{"key": "a", "value": "b\nc"}]}`, `header[0].value: "b\nc": must be printable ASCII; other bytes need a key that ends in -bin`},
		{`{"header": [{"key": "a", "binary": "AA=="}]}`, `header[0].binary: "AA==": must be value: the key does not end in -bin`},
		{`{"trailer": [{"key": "a-bin", "value": "b"}]}`, `trailer[0].value: "b": must be binary: the key ends in -bin`},
		{`{"trailer": [{"key": "grpc-status", "value": "0"}]}`, `trailer[0].key: "grpc-status": is written by gRPC itself; must be another`},
		{`{"pushback": ["1", "ü"]}`, `pushback[1]: "ü": must be printable ASCII; other bytes need a key that ends in -bin`},
		{`{"replies": [{"times": -1}]}`, "replies[0].times: -1: must be at least 0"},
		{`{"replies": [{"times": 100000}, {}]}`, "replies[1]: all messages together must be at most 100000, and have at most 64 MiB"},
		{`{"replies": [{"raw": "` + strings.Repeat("AAAA", 1000) + `", "times": 23000}]}`, "replies[0]: all messages together must be at most 100000, and have at most 64 MiB"},
		{`{"replies": [{"json": {}}]}`, "replies[0].json: must be raw: a response in JSON needs a script for one method, which the server knows by --descriptors, unlike " + get},
		{`{"moves": [{}]}`, "moves[0]: must be a move such as receive, send or cut"},
		{`{"moves": [{"pause": "-1s"}]}`, `moves[0].pause: "-1s": must be at least 0s`},
		{`{"moves": [{"cut": {}}, {"receive": 1}]}`, "moves[0].cut: must be the last move: the connection is gone then"},
		{`{"moves": [{"cut": {}}], "ok": {}}`, "ok: must be left out: the moves end with a cut, and then the connection is gone"},
		{`{"moves": [{"cut": {}}], "replies": [{}]}`, "replies: " +
			"must be left out: the moves end with a cut, and then the connection is gone; send messages before it"},
		{`{"queue": {"workers": 0, "serviceTime": "1s"}}`, "queue.workers: 0: must be at least 1"},
		{`{"queue": {"workers": 1, "serviceTime": "1s", "length": -1}}`, "queue.length: -1: must be at least 0"},
		{`{"delay": "-1s"}`, `delay: "-1s": must be at least 0s`},
		{`{"fail": {"code": 0}}`, "fail.code: 0: must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"},
	} {
		_, err := parse("f", []byte(scriptOf(get, row.step)), allFiles())
		if err == nil {
			t.Errorf("%.100s: no error; want %s", row.step, row.want)
			continue
		}
		_, got, _ := strings.Cut(err.Error(), ": ")
		if want := "scripts[0].steps[0]"; got != want+row.want && got != want+"."+row.want {
			t.Errorf("%.100s:\ngot  %s\nwant %s", row.step, got, row.want)
		}
	}
}
