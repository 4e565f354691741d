// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

func TestSetScriptAndAddSteps(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		wantText(t, "codes without a script", s.codesOf(t, get, 1), "OK")
		s.script(t, get, `{"fail": {"code": "ABORTED"}, "times": 2}, {"fail": {"code": "INTERNAL"}}`)
		wantText(t, "codes", s.codesOf(t, get, 4), "Aborted Aborted Internal Internal")
		add := &faultserverv1.AddStepsRequest{Method: get, Steps: steps(t, `{"fail": {"code": "UNKNOWN"}}, {"ok": {}}`)}
		if _, err := s.control.AddSteps(t.Context(), add); err != nil {
			t.Error(err)
		}
		wantText(t, "codes of the added steps", s.codesOf(t, get, 3), "Unknown OK OK")
		s.script(t, get, `{"fail": {"code": "ABORTED"}}`)
		wantText(t, "codes of a new script", s.codesOf(t, get, 1), "Aborted")
		s.script(t, get, ``)
		wantText(t, "codes without a script", s.codesOf(t, get, 1), "OK")
	})
}

func TestReset(t *testing.T) {
	file := &faultserverv1.ScriptFile{Scripts: []*faultserverv1.Script{
		{Method: get, Steps: steps(t, `{"fail": {"code": "UNAVAILABLE"}, "queue": {"name": "db", "workers": 1, "serviceTime": "1s"}}, {}`)},
	}}
	stage(t, control.Settings{Script: file}, func(t *testing.T, s scene) {
		s.script(t, list, `{"fail": {"code": "ABORTED"}}, {"fail": {"code": "INTERNAL"}}`)
		s.script(t, get, `{"fail": {"code": "UNKNOWN"}, "queue": {"name": "other", "workers": 1, "serviceTime": "1s"}}`)
		wantText(t, "codes", s.codesOf(t, list, 1)+" "+s.codesOf(t, get, 1), "Aborted Unknown")

		if _, err := s.control.Reset(t.Context(), &faultserverv1.ResetRequest{KeepScripts: true}); err != nil || s.Count("*") != 0 {
			t.Errorf("%v, and %d attempts; want none", err, s.Count("*"))
		}
		wantText(t, "codes of scripts that are kept", s.codesOf(t, list, 1)+" "+s.codesOf(t, get, 1), "Aborted Unknown")

		if _, err := s.control.Reset(t.Context(), &faultserverv1.ResetRequest{}); err != nil || s.Count("*") != 0 {
			t.Errorf("%v, and %d attempts; want none", err, s.Count("*"))
		}
		wantText(t, "codes of the file's scripts", s.codesOf(t, get, 2)+" "+s.codesOf(t, list, 1), "Unavailable OK OK")
		s.script(t, list, `{"queue": {"name": "other", "workers": 2, "serviceTime": "1s"}}`) // the name is free again
	})
}

func TestSetScriptErrorsChangeNothing(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		s.script(t, get, `{"fail": {"code": "ABORTED"}}`)
		bad := steps(t, `{"fail": {"code": "OK"}, "queue": {"name": "db", "workers": 1, "serviceTime": "1s"}}, {"delay": "-1s"}`)
		_, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: get, Steps: bad})
		st := status.Convert(err)
		wantText(t, "message", st.Message(), "steps[0].fail.code: \"OK\": must be the name or the number of a status code, but not OK: UNAVAILABLE, 14\n"+
			"steps[1].delay: -1s: must be 0 or more")
		fields, ok := st.Details()[0].(*errdetails.BadRequest)
		if st.Code() != codes.InvalidArgument || !ok || len(fields.GetFieldViolations()) != 2 {
			t.Fatalf("got %v with %v; want INVALID_ARGUMENT with both fields", st.Code(), st.Details())
		}
		wantText(t, "field", fields.GetFieldViolations()[1].GetField(), "steps[1].delay")
		wantText(t, "description", fields.GetFieldViolations()[1].GetDescription(), "-1s: must be 0 or more")
		wantText(t, "codes", s.codesOf(t, get, 1), "Aborted")
		s.script(t, get, `{"queue": {"name": "db", "workers": 2, "serviceTime": "2s"}}`) // the queue's name is free
	})
}

func TestStatusIsBounded(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		bad := steps(t, strings.Repeat(`{"delay": "-1s"},`, 10)+`{"delay": "-1s"}`)
		_, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: get, Steps: bad})
		lines := strings.Split(status.Convert(err).Message(), "\n")
		if len(lines) != 9 || lines[8] != "and 3 more" {
			t.Errorf("got %q", lines)
		}
	})
}

func TestScriptIsBounded(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		many := make([]*faultserverv1.Step, 6000)
		for i := range many {
			many[i] = &faultserverv1.Step{}
		}
		r := &faultserverv1.AddStepsRequest{Method: get, Steps: many}
		if _, err := s.control.AddSteps(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		_, err := s.control.AddSteps(t.Context(), r)
		wantText(t, "message", status.Convert(err).Message(), "steps: 6000: must be at most 10000 steps, with the 6000 that are there")
		_, err = s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: get, Steps: slices.Concat(many, many)})
		wantText(t, "message", status.Convert(err).Message(), "steps: 12000: must be at most 10000 steps")
		if _, err = s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: get, Steps: many}); err != nil {
			t.Error(err)
		}
		_, err = s.control.AddSteps(t.Context(), &faultserverv1.AddStepsRequest{Method: get})
		wantText(t, "message", status.Convert(err).Message(), `steps: must have at least one step, such as {"ok": {}}`)
	})
}

func TestScriptOfOwnServices(t *testing.T) {
	stage(t, control.Settings{}, func(t *testing.T, s scene) {
		for _, pattern := range []string{"", "GetOrder", "/a.B", "/a.B/", "/a*/C", "/a.B/C/D", "/a.B/C*", "/*", "**"} {
			_, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: pattern})
			wantText(t, pattern, status.Convert(err).Message(),
				fmt.Sprintf(`method: %q: must be "/package.Service/Method", "/package.Service/*" or "*"`, pattern))
		}
		for _, pattern := range []string{check, "/stagger.faultserver.v1.FaultService/*", "/grpc.reflection.v1alpha.ServerReflection/*"} {
			_, err := s.control.SetScript(t.Context(), &faultserverv1.SetScriptRequest{Method: pattern})
			wantText(t, pattern, status.Convert(err).Message(),
				fmt.Sprintf("method: %q: is answered by the fault server itself: must be a method of another service", pattern))
		}
	})
}

func TestScriptFileNamesMethodOnce(t *testing.T) {
	t.Parallel()
	one := &faultserverv1.Script{Method: get, Steps: steps(t, `{}`)}
	file := &faultserverv1.ScriptFile{Scripts: []*faultserverv1.Script{one, one, {Method: list}}}
	var report document.Report
	control.Check(&report, file, control.NewAPI())
	err := report.Err()
	if err == nil {
		t.Fatal("no error")
	}
	wantText(t, "error", err.Error(), `scripts[1].method: "`+get+`": has a script before: must be one script
scripts[2].steps: must have at least one step, such as {ok: {}}`)
	var none document.Report
	if control.Check(&none, &faultserverv1.ScriptFile{}, control.NewAPI()); none.ErrorCount() > 0 {
		t.Errorf("an empty file: %v", none.Err())
	}
}
