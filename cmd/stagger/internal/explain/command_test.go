// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	orders  = "../../../../examples/orders/retry.yaml"
	image   = "../../../../examples/orders/orders.binpb"
	parcels = "../../../../policy/testdata/descriptors/parcels.binpb"
	cancel  = "/acme.orders.v1.OrderService/CancelOrder"
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
		{[]string{orders, cancel, "--descriptors", parcels, "--descriptors", image}, "safe      yes: idempotency_level is IDEMPOTENT\n"},
		{[]string{"-", "acme.parcels.v1.ParcelService/GetParcel", "--descriptors", parcels}, "entry     the method's option in its .proto\n"},
		{[]string{"-", "acme.parcels.v1.ParcelService/GetParcel"}, "no entry names it, its service or everything: one attempt\n"},
	} {
		if got, err := run(t, "{}", one.args...); err != nil || !strings.Contains(got, one.want) {
			t.Errorf("%q: %v: no %q in\n%s", one.args, err, one.want, got)
		}
	}
}

func TestMethodName(t *testing.T) {
	t.Parallel()
	with, err := run(t, "", orders, cancel)
	without, errToo := run(t, "", orders, strings.TrimPrefix(cancel, "/"))
	if err != nil || errToo != nil || with != without || !strings.HasPrefix(with, cancel+"\n") {
		t.Errorf("%v, %v:\n%s\nand\n%s", err, errToo, with, without)
	}
	for _, name := range []string{"", "/", "GetOrder", "a.B/", "/a.B/", "//C", "a/b/c"} {
		if _, err := run(t, "", orders, name); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v; want a usage error", name, err)
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
		"of a part": {
			"percent: 12.5",
			[]string{"  mode      ENFORCE, for 12.5 % of the calls; the others are OFF\n", "(3 attempts)"},
			nil,
			shownMethod{Strategy: "retried", Because: "the entry names the method, for 12.5 % of the calls; the others are OFF", Attempts: 3},
		},
		"observed": {
			"mode: OBSERVE",
			[]string{"  mode      OBSERVE: the first extra attempt is decided, but not sent\n", "another attempt would follow", "0s and 100ms", "UNAVAILABLE: mode_off (1 attempt)"},
			[]string{"The questions after attempt"},
			shownMethod{Strategy: "observed", Because: "the mode is OBSERVE", Attempts: 1},
		},
		"off": {
			"mode: OFF",
			[]string{"  mode      OFF: extra attempts aren't sent\n", "no other attempt", "UNAVAILABLE: mode_off (1 attempt)"},
			[]string{"The questions after attempt", "would follow"},
			shownMethod{Strategy: "neither", Because: "the mode is OFF", Attempts: 1},
		},
		"of none": {
			"percent: 0",
			[]string{"  mode      ENFORCE, for 0 % of the calls; the others are OFF\n", "mode_off (1 attempt)"},
			nil,
			shownMethod{Strategy: "neither", Because: "percent is 0", Attempts: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := row.mode + "\nmethodConfig:\n- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n  " + retry + "\n"
			out := must.Get(run(t, text, "-", method))(t)
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

// A call whose client sends a stream is not hedged, whatever its policy: attempts follow failures.
func TestExplainClientStream(t *testing.T) {
	t.Parallel()
	files := must.Get(protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: new("uploads.proto"), Package: new("acme"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Uploads"), Method: []*descriptorpb.MethodDescriptorProto{
			{Name: new("Put"), InputType: new(".acme.Any"), OutputType: new(".acme.Any"), ClientStreaming: new(true)},
			{Name: new("Get"), InputType: new(".acme.Any"), OutputType: new(".acme.Any")},
		}}},
	}}}))(t)
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.Uploads}]
  idempotency: ASSUME
  hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}
`))
	if err != nil {
		t.Fatal(err)
	}
	if set, err = set.WithDescriptors(files); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{"/acme.Uploads/Put": "3, one after the other", "/acme.Uploads/Get": "3 in parallel (hedging)"} {
		q := explain.Question{Method: method, Code: codes.Unavailable, Hang: true, MaxAttempts: 5}
		a := explain.Explain(decision.Compile(set), cli.API{}.Level, q, explain.Chances{0.5})
		if got := text(a, terminal.Style{}); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s", method, want, got)
		}
		if hangs := len(a.Sent) == 1; hangs != (method == "/acme.Uploads/Put") {
			t.Errorf("%s: attempts are sent at %v though none ends", method, a.Sent)
		}
	}
}

// A call to a server that is down ends at the explained time, with the explained result.
func TestExplainDown(t *testing.T) {
	t.Parallel()
	retry := func(change func(*policy.Spec)) policy.Spec {
		s := policy.Spec{Retry: new(policy.DefaultRetry())}
		s.Retry.Backoff.Jitter, s.Retry.Budget = policy.JitterNone, policy.NoBudget
		change(&s)
		return s
	}
	for name, row := range map[string]struct {
		spec     policy.Spec
		deadline time.Duration
		says     string
	}{
		"by default":               {retry(func(*policy.Spec) {}), 0, "up to 3s, and have no deadline; not at all when the outage is older than 10s"},
		"the entry's timeout":      {retry(func(s *policy.Spec) { s.Timeout = 2 * time.Second }), 0, "up to 1.999s of the 2s that they have"},
		"the caller's deadline":    {retry(func(*policy.Spec) {}), time.Second, "up to 999ms of the 1s that they have"},
		"a wait of its own":        {retry(func(s *policy.Spec) { s.Retry.MaxConnectionWait = 300 * time.Millisecond }), 0, "up to 300ms, and have no deadline; not at all when the outage is older than 1s"},
		"no wait":                  {retry(func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(false) }), 0, "calls do not wait for a connection"},
		"retries wait in gRPC":     {retry(func(s *policy.Spec) { s.Retry.WaitForReadyOnRetry = new(true) }), time.Second, "calls wait in gRPC, until their deadline after 1s"},
		"in gRPC from the start":   {retry(func(s *policy.Spec) { s.WaitForReady = new(true) }), time.Second, "calls wait in gRPC, until their deadline after 1s"},
		"one attempt by the entry": {policy.Spec{}, 0, "calls do not wait for a connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := must.Get(policy.NewSet(policy.Config{Methods: []policy.MethodConfig{{
				Names: []string{"/acme.orders.v1.OrderService/GetOrder"}, Spec: row.spec,
			}}}))(t)
			a := explain.Explain(decision.Compile(set), cli.API{}.Level, explain.Question{Method: method, Code: codes.Unavailable, Down: true, Deadline: row.deadline, MaxAttempts: 5}, explain.Chances{0})
			said := ""
			for _, f := range a.Facts() {
				if f.Name == "down" {
					said = f.Value
				}
			}
			if !strings.Contains(said, row.says) {
				t.Errorf("%q; want %q", said, row.says)
			}
			if wait := row.spec.WaitForReady; wait != nil { // a Retrier has gRPC's own service config say that
				return
			}
			synctest.Test(t, func(t *testing.T) {
				srv := testserver.Start(t)
				retrier := must.Get(interceptor.New(set, inside.Random(func() float64 { return 0 }).(interceptor.Option), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
				conn := srv.Dial(t, retrier.DialOptions()...)
				srv.Down()
				conn.Connect()
				synctest.Wait()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if row.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, row.deadline)
				}
				defer cancel()
				began := time.Now()
				failed := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
				e, _ := errors.AsType[*interceptor.Error](failed)
				if took := time.Since(began); e == nil || took != a.At || e.Reason != a.End.Reason || e.Attempts != a.End.Attempts {
					t.Errorf("%+v after %v; explained was: %s", failed, took, a.Outcome())
				}
			})
		})
	}
}
