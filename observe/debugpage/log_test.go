// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// logged is a log without its times and targets.
func logged(l *decisionLog) (list []string) {
	for _, d := range l.all() {
		list = append(list, fmt.Sprint(d.Attempt, " ", d.Code, " ", d.Reason, " ", d.WillRetry))
	}
	return list
}

func TestDecisionLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, l := newScene(t), new(decisionLog)
		s.On("*", testserver.Fail(codes.Unavailable, "down").Times(1), testserver.Fail(codes.NotFound, strings.Repeat("ä", 400)))
		stop := s.retrier.AddObserver(l.observer())
		_ = s.call(t, getOrder)
		if got, want := logged(l), []string{"1 Unavailable retry true", "2 NotFound non_retryable false"}; !slices.Equal(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
		all := l.all()
		if first := all[0]; first.Method != getOrder || first.Target != s.conn.CanonicalTarget() || first.Time.IsZero() || !strings.Contains(first.Error, "desc = down") || first.Err != nil {
			t.Errorf("%+v", first)
		}
		if got := all[1].Error; len(got) > 256 || len(got) < 250 || strings.Count(got, "ä")*2 < 200 || strings.Contains(got, "�") {
			t.Errorf("%d bytes of text: %q", len(got), got)
		}

		// A call cancelled by its caller ends without a decision, but is logged.
		s.On("*", testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = s.conn.Invoke(ctx, getOrder, &emptypb.Empty{}, &emptypb.Empty{})
		if got := logged(l)[2:]; !slices.Equal(got, []string{"1 DeadlineExceeded deadline_exceeded false"}) {
			t.Errorf("%q", got)
		}

		s.On("*", testserver.OK())
		_ = s.call(t, getOrder)
		stop()
		s.On("*", down())
		_ = s.call(t, getOrder)
		if got := len(logged(l)); got != 3 {
			t.Errorf("%d decisions; want none of a success, nor of what came after the end", got)
		}
	})
}

func TestDecisionLog_Bounded(t *testing.T) {
	t.Parallel()
	l := new(decisionLog)
	for i := range 2*logSize + 10 {
		l.add(t.Context(), interceptor.Event{Method: getOrder, Err: fmt.Errorf("call %d", i)}, false)
	}
	all := l.all()
	if len(all) != logSize {
		t.Fatalf("%d decisions", len(all))
	}
	for i, d := range all {
		if want := fmt.Sprint("call ", logSize+10+i); d.Error != want {
			t.Fatalf("decision %d is %q; want %q", i, d.Error, want)
		}
	}
}
