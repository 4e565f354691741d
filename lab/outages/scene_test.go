// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outages

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/lab/peers"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const ms = time.Millisecond

// scene is an outage of all servers, and the calls that meet it.
type scene struct {
	processes int           // with a connection to each server, and budgets of their own
	rate      float64       // calls a second, of all processes together, whatever becomes of earlier calls; 0: workers call
	workers   int           // of each process: each calls when its last call has ended
	deadline  time.Duration // of a call
	servers   int           // 0: 4
	room      float64       // requests a second that the servers can answer; 0: 1,000
	away      time.Duration // how long all servers fail
	cut       bool          // they are not there, instead of answering UNAVAILABLE
	length    time.Duration // from the beginning of the outage until the last call begins
	stillDown int           // servers that fail on after the outage
	answer    codes.Code    // of a healthy server
}

// before is how long calls are made before the outage.
const before = 2 * time.Second

// played has the calls and requests of a scene. Times count from the beginning of the outage.
type played struct {
	scene

	calls    []ended         // in the order in which they begin
	requests []time.Duration // arrivals at the servers
}

// retrier is a way to retry.
type retrier struct {
	name string
	dial func(t *testing.T, process int) []grpc.DialOption
}

var outagePlan = peers.Plan{Attempts: 5, Initial: 100 * ms, Max: 2 * time.Second, Jitter: 0.2, AttemptTimeout: 200 * ms}

// retriers are stagger and its peers, whose retries no budget limits. The first is the reference, and the last is stagger.
var retriers = []retrier{
	{"no retries", func(*testing.T, int) []grpc.DialOption { return []grpc.DialOption{grpc.WithDisableRetry(), reconnects} }},
	{"gRPC", func(*testing.T, int) []grpc.DialOption {
		return []grpc.DialOption{reconnects, peers.ServiceConfig(outagePlan, `"loadBalancingConfig": [{"round_robin": {}}],`)}
	}},
	{"go-grpc-middleware", func(*testing.T, int) []grpc.DialOption { return middlewares(outagePlan) }},
	{"failsafe-go", func(*testing.T, int) []grpc.DialOption { return failsafes(outagePlan, 0) }},
	{"stagger", func(t *testing.T, process int) []grpc.DialOption {
		t.Helper()
		set := testkit.Must(policy.Parse("retry.yaml", []byte(`
loadBalancingConfig: [{round_robin: {}}]
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 5, initialBackoff: 0.1s, maxBackoff: 2s, backoffMultiplier: 2, jitter: FULL,
      perAttemptTimeout: 0.2s, retryableStatusCodes: [UNAVAILABLE, RESOURCE_EXHAUSTED]}
`)))(t)
		r := testkit.Must(interceptor.New(set, interceptor.WithRandom(testkit.NewTimes(0, 0, uint64(process)).Chance)))(t)
		t.Cleanup(func() { r.Close() })
		return r.DialOptions()
	}},
}

// play plays the scene for a client.
func (s scene) play(t *testing.T, r retrier) (p played) {
	t.Helper()
	if s.servers == 0 {
		s.servers = 4
	}
	if s.room == 0 {
		s.room = 1000
	}
	p.scene = s
	synctest.Test(t, func(t *testing.T) {
		var list []*testserver.Server
		var steps []testserver.Step
		for i := range s.servers {
			list = append(list, testserver.Start(t))
			steps = append(steps, s.work(t, uint64(i)))
			list[i].On("*", steps[i])
		}
		var conns []*grpc.ClientConn
		for i := range s.processes {
			conn := testkit.Must(testserver.DialAll(list, append([]grpc.DialOption{grpc.WithDefaultServiceConfig(
				`{"loadBalancingConfig": [{"round_robin": {}}]}`)}, r.dial(t, i)...)...))(t)
			t.Cleanup(func() { _ = conn.Close() })
			conn.Connect()
			conns = append(conns, conn)
		}
		time.Sleep(time.Second)
		synctest.Wait()

		start := time.Now().Add(before)
		var running sync.WaitGroup
		running.Go(func() {
			time.Sleep(time.Until(start))
			for _, server := range list {
				if s.cut {
					server.Down()
				} else {
					server.On("*", testserver.Fail(codes.Unavailable))
				}
			}
			time.Sleep(s.away)
			for i, server := range list {
				server.Up()
				if i >= s.stillDown {
					server.On("*", steps[i])
				}
			}
		})
		p.calls = s.call(t, start, conns)
		running.Wait()
		for _, server := range list {
			for _, a := range server.Attempts() {
				p.requests = append(p.requests, a.Time.Sub(start))
			}
		}
	})
	slices.SortFunc(p.calls, func(a, b ended) int { return int(a.at - b.at) })
	slices.Sort(p.requests)
	return p
}

// work returns what a healthy server does: the response times have a median of 17 ms with a spread of σ 0.4, and a hundredth takes
// ten times as long. That is 20 ms on average, or more, if a server with less room has one worker.
func (s scene) work(t *testing.T, seed uint64) testserver.Step {
	t.Helper()
	workers := max(int(math.Ceil(s.room*0.02/float64(s.servers))), 1)
	longer := float64(workers) * float64(s.servers) / s.room / 0.02
	times, random := testkit.NewTimes(17*ms, 0.4, 7+seed), rand.New(rand.NewPCG(seed, 9))
	queue := testkit.Must(faults.NewQueue(faults.QueueConfig{Workers: workers, Time: 20 * ms, Length: 75 * workers, Draw: func() time.Duration {
		took := float64(times.Draw()) * longer
		if random.Float64() < 0.01 {
			took *= 10
		}
		return time.Duration(took)
	}}))(t)
	if s.answer != codes.OK {
		return queue.Serve(testserver.Fail(s.answer))
	}
	return queue.Serve(testserver.OK())
}

// call makes the calls, and returns them when all have ended.
func (s scene) call(t *testing.T, start time.Time, conns []*grpc.ClientConn) []ended {
	t.Helper()
	var mu sync.Mutex
	var calls []ended // guarded by mu
	one := func(conn *grpc.ClientConn) {
		ctx, cancel := context.WithTimeout(t.Context(), s.deadline)
		defer cancel()
		at := time.Now()
		err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, ended{at.Sub(start), time.Since(at), status.Code(err) == s.answer})
	}
	var running sync.WaitGroup
	if s.rate == 0 {
		for i := range s.processes * s.workers {
			running.Go(func() {
				time.Sleep(time.Duration(i) * ms)
				for time.Since(start) < s.length {
					one(conns[i%len(conns)])
					time.Sleep(ms) // a call without a connection takes no time, and virtual time would stand still
				}
			})
		}
		running.Wait()
		return calls
	}
	times := testkit.NewTimes(0, 0, 3)
	random := rand.New(rand.NewPCG(0, 3))
	for {
		time.Sleep(times.Wait(s.rate))
		if time.Since(start) >= s.length {
			break
		}
		conn := conns[random.IntN(len(conns))]
		running.Go(func() { one(conn) })
	}
	running.Wait()
	return calls
}

// between returns the calls that begin in [from, to), and how many succeed.
func (p played) between(from, to time.Duration) (list []ended, ok int) {
	for _, c := range p.calls {
		if c.at >= from && c.at < to {
			list = append(list, c)
			if c.ok {
				ok++
			}
		}
	}
	return list, ok
}

// success returns the part of the calls that succeed, in %, since the outage began.
func (p played) success() float64 { return p.successIn(0, p.length) }

func (p played) successIn(from, to time.Duration) float64 {
	list, ok := p.between(from, to)
	return 100 * float64(ok) / float64(max(len(list), 1))
}

// perCall returns the requests for each call since the outage began.
func (p played) perCall() float64 {
	list, _ := p.between(0, p.length)
	i, _ := slices.BinarySearch(p.requests, 0)
	return float64(len(p.requests)-i) / float64(max(len(list), 1))
}

// median returns that of the calls that begin in [from, to); 0 if there are none.
func (p played) median(from, to time.Duration) time.Duration {
	list, _ := p.between(from, to)
	if len(list) == 0 {
		return 0
	}
	took := make([]time.Duration, len(list))
	for i, c := range list {
		took[i] = c.took
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// recovered returns how long after the return the median of new calls is below twice that before, in each half of a second from then on.
func (p played) recovered() time.Duration {
	const window = 500 * ms
	usual := p.median(-before, 0)
	at := p.length - window
	for at >= p.away && p.median(at, at+window) <= 2*usual {
		at -= 100 * ms
	}
	return max(at+100*ms-p.away, 0)
}

// peak returns the most arrivals a second in any tenth of a second after the return.
func (p played) peak() float64 {
	most, first := 0, 0
	for i, at := range p.requests {
		for at-p.requests[first] >= 100*ms {
			first++
		}
		if at >= p.away {
			most = max(most, i-first+1)
		}
	}
	return float64(most) * 10
}

// firstSuccess returns how long after the return the first call ends with a success.
func (p played) firstSuccess() time.Duration {
	first := time.Hour
	for _, c := range p.calls {
		if end := c.at + c.took; c.ok && end >= p.away {
			first = min(first, end-p.away)
		}
	}
	return first
}
