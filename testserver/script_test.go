// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

func TestScriptMostSpecificWins(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On("*", testserver.Fail(codes.Aborted))
		s.On("/acme.orders.v1.OrderService/*", testserver.Fail(codes.NotFound))
		s.On(get, testserver.Fail(codes.DataLoss))
		wantCode(t, s.call(t.Context(), get), codes.DataLoss)
		wantCode(t, s.call(t.Context(), list), codes.NotFound)
		wantCode(t, s.call(t.Context(), pay), codes.Aborted)
		s.On(get)
		wantCode(t, s.call(t.Context(), get), codes.NotFound)
	})
}

func TestScriptBeginsAnew(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable), testserver.OK())
		wantText(t, "codes", s.codesOf(t, get, 3), "Unavailable OK OK")
		s.On(get, testserver.Fail(codes.Unavailable), testserver.OK())
		wantText(t, "codes of a new script", s.codesOf(t, get, 2), "Unavailable OK")
		s.Reset()
		if s.Count(get) != 0 || len(s.Attempts()) != 0 {
			t.Errorf("%d attempts counted, %d kept after a reset", s.Count(get), len(s.Attempts()))
		}
		wantText(t, "codes after the reset", s.codesOf(t, get, 2), "Unavailable OK")
		if n := s.Attempts()[0].Number; n != 1 {
			t.Errorf("the first attempt after a reset has number %d", n)
		}
	})
}

func TestReplace(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable), testserver.OK())
		s.On("*", testserver.Fail(codes.NotFound))
		wantText(t, "codes", s.codesOf(t, get, 1), "Unavailable")
		bad := map[string][]testserver.Step{get: {testserver.Fail(codes.Aborted)}, list: {testserver.Fail(codes.OK)}, "GetOrder": nil}
		err := s.Replace(bad)
		if err == nil || !strings.Contains(err.Error(), list+": step 1: Fail with code OK") || !strings.Contains(err.Error(), `On("GetOrder"): want`) {
			t.Errorf("got %v; want an error for each of two scripts", err)
		}
		wantText(t, "codes after an error", s.codesOf(t, get, 1), "OK")
		if err := s.Replace(map[string][]testserver.Step{get: {testserver.Fail(codes.Aborted), testserver.OK()}}); err != nil {
			t.Error(err)
		}
		if s.Count("*") != 0 || len(s.Attempts()) != 0 {
			t.Errorf("%d attempts counted, %d kept; want none", s.Count("*"), len(s.Attempts()))
		}
		wantText(t, "codes of the new script", s.codesOf(t, get, 2), "Aborted OK")
		wantText(t, "codes without a script", s.codesOf(t, list, 1), "OK")
	})
}

type badStep struct {
	pattern string
	step    testserver.Step
	want    string
}

// errs has steps and patterns that On must refuse, each with the error text.
var errs = []badStep{
	{"GetOrder", testserver.OK(), `testserver: On("GetOrder"): want "/package.Service/Method", "/package.Service/*" or "*"`},
	{"/*", testserver.OK(), `testserver: On("/*"): want`},
	{"/a/*/*", testserver.OK(), `testserver: On("/a/*/*"): want`},
	{"/a/Get*", testserver.OK(), `testserver: On("/a/Get*"): want`},
	{get, testserver.OK().Times(0), "step 1: Times(0): want at least 1"},
	{get, testserver.OK().Delay(-1), "step 1: Delay(-1ns): want 0 or more"},
	{get, testserver.OK().RetryInfo(time.Second), "step 1: RetryInfo: only a failure has details: want Fail(…).RetryInfo(…)"},
	{get, testserver.OK(wrapperspb.String("\xff")), "step 1: OK(*wrapperspb.StringValue): "},
	{get, testserver.OK().Header(metadata.Pairs("Grpc-Status", "0")), `step 1: Header("grpc-status"): gRPC writes this key itself: want another`},
	{get, testserver.OK().Trailer(metadata.Pairs(":path", "/")), `step 1: Trailer(":path"): gRPC writes this key itself: want another`},
	{get, testserver.Fail(codes.OK), "step 1: Fail with code OK: want another code, or OK()"},
	{get, testserver.Func(nil), "step 1: Func(nil): want a function"},
	{get, testserver.OK().Before(nil), "step 1: Before(nil): want a function"},
	{get, testserver.OK().Invalid(errors.New("busy(0): want more")), "step 1: busy(0): want more"},
	{get, testserver.Random(1, 1.5, testserver.Hang()), "step 1: Random with probability 1.5: want 0 to 1"},
	{get, testserver.Random(1, 1, testserver.Fail(codes.OK)), "step 1: Fail with code OK"},
}

func TestScriptErrorsReachTestAndCalls(t *testing.T) {
	t.Parallel()
	for _, row := range slices.Concat(errs, badPlays) {
		t.Run(row.want, func(t *testing.T) {
			stage(t, func(t *testing.T, _ scene) {
				heard := &listeningTB{TB: t}
				srv := testserver.Start(heard)
				s := scene{srv, srv.Dial(t)}
				srv.On(row.pattern, row.step)
				if len(heard.errors) != 1 || !strings.Contains(heard.errors[0], row.want) {
					t.Errorf("the test heard %q; want %q", heard.errors, row.want)
				}
				a := s.call(t.Context(), pay)
				wantCode(t, a, codes.Internal)
				if !strings.Contains(a.err.Error(), row.want) {
					t.Errorf("the call heard %v; want %q", a.err, row.want)
				}
			})
		})
	}
}

// listeningTB keeps errors to itself.
type listeningTB struct {
	testing.TB
	errors []string
}

func (tb *listeningTB) Error(args ...any) { tb.errors = append(tb.errors, fmt.Sprint(args...)) }

func TestStepErr(t *testing.T) {
	t.Parallel()
	if err := testserver.OK().Err(); err != nil {
		t.Error(err)
	}
	if err := testserver.Fail(codes.OK).Delay(-1).Err(); err == nil || strings.Count(err.Error(), "want") != 2 {
		t.Errorf("got %v; want both errs", err)
	}
}
