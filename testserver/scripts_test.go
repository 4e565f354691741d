// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/testserver"
)

func TestSetIsOnWhoseMistakesChangeNothing(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		for _, row := range []struct {
			pattern string
			step    testserver.Step
			want    string
		}{
			{"GetOrder", testserver.OK(), `"GetOrder"`},
			{get, testserver.OK().Times(0), "step 2: Times(0): want at least 1"},
		} {
			for _, change := range []func(string, ...testserver.Step) error{s.Set, s.Add} {
				if err := change(row.pattern, testserver.Fail(codes.Aborted), row.step); err == nil || !strings.Contains(err.Error(), row.want) {
					t.Errorf("%s: got %v; want %s", row.pattern, err, row.want)
				}
			}
		}
		wantText(t, "codes", s.codesOf(t, get, 1), "OK")
		if err := s.Set(get, testserver.Fail(codes.Aborted), testserver.Fail(codes.Internal)); err != nil {
			t.Error(err)
		}
		if err := s.Set("*", testserver.Fail(codes.NotFound)); err != nil {
			t.Error(err)
		}
		wantText(t, "codes", s.codesOf(t, get, 3), "Aborted Internal Internal")
		wantText(t, "codes of others", s.codesOf(t, list, 1), "NotFound")
		if err := s.Set(get); err != nil {
			t.Error(err)
		}
		wantText(t, "codes without its script", s.codesOf(t, get, 1), "NotFound")
		if s.Err() != nil {
			t.Error(s.Err())
		}
	})
}

func TestAddedStepsComeNextForMethodsThatAreThroughTheScript(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		const every = "/acme.orders.v1.OrderService/*"
		add := func(steps ...testserver.Step) {
			t.Helper()
			if err := s.Add(every, steps...); err != nil {
				t.Error(err)
			}
		}
		add(testserver.Fail(codes.Aborted).Times(2)) // makes the script
		wantText(t, "codes", s.codesOf(t, get, 5), "Aborted Aborted Aborted Aborted Aborted")
		wantText(t, "codes of one that is not through", s.codesOf(t, list, 1), "Aborted")
		add(testserver.Fail(codes.Internal), testserver.OK())
		wantText(t, "codes", s.codesOf(t, get, 3), "Internal OK OK")
		wantText(t, "codes of one that was not through", s.codesOf(t, list, 4), "Aborted Internal OK OK")
	})
}

func TestAStepSaysWhatIsImpossibleInIt(t *testing.T) {
	t.Parallel()
	if err := testserver.OK().Err(); err != nil {
		t.Error(err)
	}
	if err := testserver.Fail(codes.OK).Delay(-1).Err(); err == nil || strings.Count(err.Error(), "want") != 2 {
		t.Errorf("got %v; want both mistakes", err)
	}
}
