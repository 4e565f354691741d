// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

const (
	orders = "../../../../examples/orders/retry.yaml"
	image  = "../../../../examples/orders/orders.binpb"
	cancel = "/acme.orders.v1.OrderService/CancelOrder"
)

// run returns the command's output and error. in is its standard input.
func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := Command()
	c.SetArgs(args)
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{orders, cancel}, "safe      no: nothing declares it idempotent\n"},
		{[]string{orders, cancel, "--descriptors", image}, "safe      yes: idempotency_level is IDEMPOTENT\n"},
		{[]string{"-", cancel, "--descriptors", image}, "no entry names it, its service or everything: one attempt\n"},
	} {
		if got, err := run(t, "{}", one.args...); err != nil || !strings.Contains(got, one.want) {
			t.Errorf("%q: %v: no %q in\n%s", one.args, err, one.want, got)
		}
	}
}

// A method that neither an entry nor a descriptor has is an error, and most often a typing error.
func TestUnknownMethod(t *testing.T) {
	t.Parallel()
	const named = "methodConfig: [{name: [{service: a.B, method: GetOrder}]}]"
	for _, row := range [][]string{
		{"{}", ": no entry and no descriptor has this method", "-", "a.B/GetOrder"},
		{named, "/a.B/GetOrdr: no entry and no descriptor has this method; did you mean /a.B/GetOrder?", "-", "a.B/GetOrdr"},
		{"{}", "; did you mean " + cancel + "?", "-", cancel + "s", "--descriptors", image},
		{"methodConfig: [{name: [{}]}]", "; did you mean " + cancel + "?", "-", cancel + "s", "--descriptors", image},
	} {
		if got, err := run(t, row[0], row[2:]...); err == nil || !strings.HasSuffix(err.Error(), row[1]) || got != "" {
			t.Errorf("%q: %v, and %q; want an error that ends with %q", row, err, got, row[1])
		}
	}
}

func TestExplainMode(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mode       string
		want, not  []string // of the text
		inOverview shownMethod
	}{
		"enforced": {
			"mode: ENFORCE",
			[]string{"another attempt", "attempts_exhausted (3 attempts)"},
			[]string{"  mode  "},
			shownMethod{Strategy: "retried", Because: "the entry names the method", Attempts: 3},
		},
		"observed": {
			"mode: OBSERVE",
			[]string{"  mode      OBSERVE: the first extra attempt is decided, but not sent\n", "another attempt would follow", "0s and 100ms", "UNAVAILABLE: mode_off (1 attempt)"},
			[]string{"The checks after attempt"},
			shownMethod{Strategy: "observed", Because: "the mode is OBSERVE", Attempts: 1},
		},
		"off": {
			"mode: OFF",
			[]string{"  mode      OFF: extra attempts aren't sent\n", "no other attempt", "UNAVAILABLE: mode_off (1 attempt)"},
			[]string{"The checks after attempt", "would follow"},
			shownMethod{Strategy: "neither", Because: "the mode is OFF", Attempts: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := row.mode + "\nmethodConfig:\n- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n  " + retry + "\n"
			out := testkit.Must(run(t, text, "-", method))(t)
			for _, want := range row.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			for _, not := range row.not {
				if strings.Contains(out, not) {
					t.Errorf("%q in\n%s", not, out)
				}
			}
			list, _ := runAll(t, text)
			got := list[0]
			if got.Strategy != row.inOverview.Strategy || got.Because != row.inOverview.Because || got.Attempts != row.inOverview.Attempts {
				t.Errorf("the overview has %+v; want %+v", got, row.inOverview)
			}
		})
	}
}

// What is shown of a method as a text is there for programs.
func TestExplainJSON(t *testing.T) {
	t.Parallel()
	var got answerJSON
	const method = "acme.orders.v1.OrderService/GetOrder"
	testkit.NoError(t, json.Unmarshal([]byte(testkit.Must(run(t, "", orders, method, "--format", "json"))(t)), &got))
	d := got.Decisions
	if got.Method != "/"+method || got.Strategy != explain.Retried || !got.Safe || got.Attempts != 4 ||
		got.Entry != "/"+method || got.DeadlineSeconds != 2 || len(d) != 4 {
		t.Fatalf("%+v", got)
	}
	if first := d[0]; first.Attempt != 1 || !first.Retry || first.DelaySeconds == nil || *first.DelaySeconds <= 0 ||
		first.LongestSeconds != 0.1 || first.Reason != "retry" {
		t.Errorf("%+v", first)
	}
	if last := d[3]; last.Retry || last.DelaySeconds != nil || last.Reason != "attempts_exhausted" || got.End == nil ||
		got.End.Reason != last.Reason ||
		got.End.Code != "UNAVAILABLE" || got.End.Attempts != 4 || got.End.AtSeconds != last.AtSeconds || got.Hang != nil {
		t.Errorf("%+v, %+v", last, got.End)
	}
	got = answerJSON{}
	const slow = "methodConfig:\n- name: [{service: a.B, method: C}]\n  retryPolicy: {maxAttempts: 2, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, " +
		"retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.5s}\n"
	testkit.NoError(t, json.Unmarshal([]byte(testkit.Must(run(t, slow, "-", "a.B/C", "--hang", "--rate", "5", "--format", "json"))(t)), &got))
	if got.End != nil || len(got.Decisions) != 1 || !got.Decisions[0].Slow || got.Hang == nil || got.Hang.Rate != 5 ||
		got.Hang.Calls < 200 || got.Hang.ExtraAttempts == 0 {
		t.Errorf("a call that never ends: %+v", got)
	}
	testkit.NoError(t, json.Unmarshal([]byte(testkit.Must(run(t, slow, "-", "a.B/C", "--hang", "--deadline", "1s", "--format", "json"))(t)), &got))
	if got.End == nil || got.End.Hedges != 1 || got.End.Code != "DEADLINE_EXCEEDED" {
		t.Errorf("a call with a deadline: %+v", got.End)
	}
}

// In a hang, the command says what to do first, and what helps an undeclared method.
func TestExplainHang(t *testing.T) {
	t.Parallel()
	const file = "methodConfig:\n- name: [{service: a.B, method: C}]\n  retryPolicy: &r {maxAttempts: 2, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, " +
		"retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.5s}\n- name: [{service: a.B}]\n  retryPolicy: *r\n"
	for method, undeclared := range map[string]bool{"a.B/C": false, "a.B/D": true} {
		got := testkit.Must(run(t, file, "-", method, "--hang", "--deadline", "1s"))(t)
		if !strings.Contains(got, "find it and stop it") || strings.Contains(got, "have gRPC eject the backend") != undeclared {
			t.Errorf("%s: %s", method, got)
		}
	}
	if got := testkit.Must(run(t, file, "-", "a.B/C"))(t); strings.Contains(got, "find it and stop it") {
		t.Errorf("without a hang: %s", got)
	}
}

// The flags that go together.
func TestExplainUsage(t *testing.T) {
	t.Parallel()
	const method = "acme.orders.v1.OrderService/GetOrder"
	for _, row := range []struct{ want, flags string }{
		{"--rate: is for --hang", "--rate 5"},
		{"--rate 0: must be 0.1 to 1000", "--hang --rate 0"},
		{"--rate 1001: must be 0.1 to 1000", "--hang --rate 1001"},
		{"--rate NaN: must be 0.1 to 1000", "--hang --rate NaN"},
		{"--hang: an attempt without a response has no", "--hang --code ABORTED"},
	} {
		if got, err := run(t, "", append([]string{orders, method}, strings.Fields(row.flags)...)...); err == nil ||
			!strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: %v: %s", row.flags, err, got)
		}
	}
}

// A call whose client sends a stream has neither hedges nor attempt timeouts, whatever its policy: attempts follow failures.
func TestExplainClientStream(t *testing.T) {
	t.Parallel()
	files := testkit.Must(protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: new("uploads.proto"), Package: new("acme"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Uploads"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("Put"), InputType: new(".acme.Any"), OutputType: new(".acme.Any"), ClientStreaming: new(true)},
			{Name: new("Get"), InputType: new(".acme.Any"), OutputType: new(".acme.Any")},
		}}},
	}}}))(t)
	const put, get = "/acme.Uploads/Put", "/acme.Uploads/Get"
	for entry, wants := range map[string]map[string]string{
		"hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}": {
			put: "3, one after the other", get: "3 in parallel (hedging)",
		},
		"retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptTimeout: 1s, budget: NONE}": {
			put: "none for an attempt, since the client sends a stream", get: "1s for an attempt, then a parallel one (HEDGE)",
		},
	} {
		set := testkit.Must(policy.Parse("retry.yaml", []byte("methodConfig:\n- name: [{service: acme.Uploads}]\n  idempotency: ASSUME\n  "+entry+"\n")))(t)
		for method, want := range wants {
			q := explain.Question{Method: method, Code: codes.Unavailable, Hang: true, MaxAttempts: 5}
			a := explain.Explain(methods.Describe(set, files), q, []float64{0.5})
			if got := a.Text(); !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", method, want, got)
			}
			if hangs := len(a.Sent) == 1; hangs != (method == put) {
				t.Errorf("%s: attempts are sent at %v though none ends", method, a.Sent)
			}
		}
	}
}
