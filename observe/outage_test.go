// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// An outage has two lines for each target, however many calls wait: when retries begin to wait, and when none waits any more.
func TestSlog_Outage(t *testing.T) {
	t.Parallel()
	const failing = `level=WARN msg="stagger: all attempts fail, so retries wait for an answer" target=T since=2000-01-01T00:00:00Z ` +
		`method=/acme.orders.v1.OrderService/GetOrder code=UNAVAILABLE error="rpc error: code = Unavailable desc = disk full"`
	for name, row := range map[string]struct {
		back time.Duration // 0: never
		want string
	}{
		"a second": {time.Second, `level=INFO msg="stagger: the server answers again, after calls have waited" target=T since=2000-01-01T00:00:00Z calls=10 saved=10 lasted=1.6s`},
		"for ever": {0, `level=WARN msg="stagger: calls waited for an answer, and none came" target=T since=2000-01-01T00:00:00Z calls=10 saved=0`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out synced
				set := testkit.Must(policy.Parse("retry.yaml", []byte(strings.NewReplacer("budget: NONE", "", "maxAttempts: 3", "maxAttempts: 9").Replace(file))))(t)
				r := testkit.Must(interceptor.New(set, interceptor.WithObserver(observe.Slog(slog.New(slog.NewTextHandler(&out, nil))))))(t)
				s := testserver.Start(t)
				s.On("*", testserver.OK())
				conn := s.Dial(t, r.DialOptions()...)
				call := func(options ...grpc.CallOption) {
					_ = conn.Invoke(t.Context(), "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}, options...)
				}
				for range 200 { // so that the bucket pays for a probe each 0.2 s
					call()
				}
				s.On("*", testserver.Fail(codes.Unavailable, "disk full"))
				for range 5 {
					call(interceptor.MaxAttempts(1))
				}
				if row.back > 0 {
					time.AfterFunc(row.back, func() { s.On("*", testserver.OK()) })
				}
				var calls sync.WaitGroup
				for range 10 {
					calls.Go(func() { call() })
					time.Sleep(time.Millisecond) // in one instant, chance would say which of them asks when
				}
				calls.Wait()
				time.Sleep(time.Minute)
				got := regexp.MustCompile(`target=\S+`).ReplaceAllString(out.take(), "target=T")
				for _, want := range []string{failing, row.want} {
					if strings.Count(got, " "+want) != 1 {
						t.Errorf("logged\n%s, and not once\n%s", got, want)
					}
				}
				if strings.Count(got, "answer") != 2 {
					t.Errorf("logged\n%s; want two lines about the outage", got)
				}
			})
		})
	}
}
