// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outages

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health" // clients check it, too
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// telling is what a service in the middle tells its caller when the service below is down.
type telling struct {
	says                string
	interceptor, health bool
}

var tellings = []telling{
	{says: "doesn't tell the gateway to stop"},
	{says: "tells it, as the interceptors do", interceptor: true},
	{says: "tells it, and the gateway checks its health", interceptor: true, health: true},
}

// TestDocsAreCurrent_Chains compares the tables of chains with a run.
func TestDocsAreCurrent_Chains(t *testing.T) {
	off := map[string][]terminal.Off{}
	cut := report.Table{
		Title:   "Success of the gateway's calls, and requests at the middle for each",
		Columns: []string{"the middle", "dead for all", "one of three cut off"},
	}
	for _, column := range cut.Columns[1:] {
		off[column] = []terminal.Off{{Abs: 3}, {Abs: 0.05}}
	}
	testkit.Judge(t, func(one testing.TB) {
		cut.Rows = nil
		for _, says := range tellings {
			row := []string{says.says}
			for _, dead := range []int{3, 1} {
				success, perCall := says.play(t, dead)
				row = append(row, fmt.Sprintf("%.1f %%, %.2f", 100*success, perCall))
			}
			cut.Rows = append(cut.Rows, row)
		}
		agree(one, page, "cut off", cut, off)
	})
	restart := report.Table{
		Title:   "Calls that succeed, and other callers who are told not to retry before their deadline, averages of forty plays",
		Columns: []string{"deadline", "the last service is down for 0.3 s", "for 2 s"},
	}
	for _, column := range restart.Columns[1:] {
		off[column] = []terminal.Off{{Abs: 10}, {Abs: 1}} // in twelve runs, averages were at most 7 apart
	}
	testkit.Judge(t, func(one testing.TB) {
		restart.Rows = nil
		for _, deadline := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second} {
			row := []string{fmt.Sprintf("%v s", deadline.Seconds())}
			for _, away := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
				var r restarted
				for range 40 {
					r.play(t, deadline, away)
				}
				row = append(row, r.String())
			}
			restart.Rows = append(restart.Rows, row)
		}
		agree(one, "results.md", "restart", restart, off)
	})
}

func ourRetrier(t *testing.T) *interceptor.Retrier {
	t.Helper()
	file := `{"methodConfig": [{"name": [{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}], ` + retries + `}}]}`
	set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
	r := testkit.Must(interceptor.New(set))(t)
	t.Cleanup(func() { r.Close() })
	return r
}

// play returns the success of a gateway's calls, and the requests in the middle for each, while the last service is dead for some of three
// services in the middle, for so long that calls don't wait for it.
func (says telling) play(t *testing.T, dead int) (success, perCall float64) {
	t.Helper()
	const users = 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var middle, last []*testserver.Server
		for range 3 {
			s := testserver.Start(t, testserver.Keep(1))
			s.On("*", testserver.OK().Delay(work))
			r := ourRetrier(t)
			conn := s.Dial(t, r.DialOptions()...)
			conn.Connect()
			var options []grpc.ServerOption
			if says.interceptor {
				options = r.ServerOptions()
			}
			serving := health.NewServer()
			registered := testserver.Register(func(to grpc.ServiceRegistrar) { healthpb.RegisterHealthServer(to, serving) })
			middle = append(middle, relay(t, conn, options, registered))
			last = append(last, s)
			go followState(t.Context(), conn, serving)
		}
		dial := ourRetrier(t).DialOptions()
		config := `{"loadBalancingConfig": [{"round_robin": {}}]}`
		if says.health {
			config = `{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}`
		}
		gateway := testkit.Must(testserver.DialAll(middle, append(dial, grpc.WithDefaultServiceConfig(config))...))(t)
		t.Cleanup(func() { _ = gateway.Close() })
		gateway.Connect()
		call(t, gateway, calm)
		for _, s := range last[:dead] {
			s.Down()
		}
		call(t, gateway, calm)
		requests := func() (n int) {
			for _, s := range middle {
				n += s.Count(method)
			}
			return n
		}
		before := requests()
		good, all := call(t, gateway, users)
		success, perCall = float64(good)/float64(all), float64(requests()-before)/float64(all)
	})
	return success, perCall
}

// followState has a health server follow the state of a connection, as docs/chains.md shows it.
func followState(ctx context.Context, conn *grpc.ClientConn, healthServer *health.Server) {
	for state := conn.GetState(); state != connectivity.Shutdown; state = conn.GetState() {
		serving := healthpb.HealthCheckResponse_SERVING
		if state == connectivity.TransientFailure {
			serving = healthpb.HealthCheckResponse_NOT_SERVING
		}
		healthServer.SetServingStatus("", serving)
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// restarted is what becomes of calls to a service in the middle while the last one restarts.
type restarted struct{ calls, answered, told int }

// String shows the part that is answered, and of all others the part that is told.
func (r *restarted) String() string {
	told := 100.0
	if r.answered < r.calls {
		told = 100 * float64(r.told) / float64(r.calls-r.answered)
	}
	return fmt.Sprintf("%.0f %%, %.0f %%", 100*float64(r.answered)/float64(r.calls), told)
}

// play adds a restart. When gRPC connects again depends on a jitter that can't be seeded.
func (r *restarted) play(t *testing.T, deadline, away time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		last := testserver.Start(t, testserver.Keep(1))
		last.On("*", testserver.OK())
		below := last.Dial(t, ourRetrier(t).DialOptions()...)
		middle := relay(t, below, ourRetrier(t).ServerOptions())
		conn := middle.Dial(t, grpc.WithDisableRetry())
		below.Connect()
		time.Sleep(time.Second)
		last.Down()
		time.AfterFunc(away, last.Up)
		var mu sync.Mutex
		var running sync.WaitGroup
		for range int(away / interval) {
			r.calls++
			running.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
				end, _ := ctx.Deadline()
				late := time.Until(end) < 10*time.Millisecond
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					r.answered++
				case status.Code(err) == codes.Unavailable && !late:
					r.told++
				}
			})
			time.Sleep(interval)
		}
		running.Wait()
	})
}
