// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/wrapperspb"

	_ "github.com/stagger-go/stagger/elsewhere" // the policy stagger_retry_elsewhere
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

const (
	method   = "/acme.orders.v1.OrderService/GetOrder"
	interval = 20 * time.Millisecond // between the calls of a client
	patience = 2 * time.Second       // of a call
	calm     = 5 * time.Second       // before the trouble
	brief    = 3 * time.Second       // an interruption of the network
	long     = 8 * time.Second       // a longer one
	pause    = 10 * time.Second      // of a process
	large    = 512 << 10             // bytes, of a request that fills the receive buffer of a process that is paused
	elsewise = `loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]` + "\n"
	retries  = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.2s}
`
)

// The ends of the times after the trouble that the page shows.
var phases = []time.Duration{10 * time.Second, 25 * time.Second, time.Minute}

// setting is a keepalive of a client.
type setting struct {
	name    string
	options []grpc.DialOption // after those of the Retrier
	bounded bool              // it is the default
}

// timeouts returns the settings that the page compares.
func timeouts() []setting {
	of := func(every, timeout time.Duration) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: every, Timeout: timeout})}
	}
	return []setting{
		{"none", of(math.MaxInt64, 20*time.Second), false},
		{"5 s", of(6*time.Minute, 5*time.Second), false},
		{"10 s", of(6*time.Minute, 10*time.Second), false},
		{"20 s, the default", nil, true},
	}
}

// client makes calls, and keeps how they ended.
type client struct {
	conn    *grpc.ClientConn
	request *wrapperspb.BytesValue
	every   time.Duration // between calls

	mu    sync.Mutex
	calls []ended // guarded by mu
	dials int     // guarded by mu
}

// ended is a call.
type ended struct {
	began    time.Time
	ok       bool
	attempts int
}

type attemptsKey struct{}

// newClient connects to some addresses with a policy and a keepalive.
func newClient(file string, s setting, request int, addresses ...string) (*client, error) {
	c := &client{request: wrapperspb.Bytes(make([]byte, request)), every: interval}
	if request > 0 {
		c.every *= 5
	}
	set, err := policy.Parse("retry.yaml", []byte(file))
	if err != nil {
		return nil, err
	}
	r, err := interceptor.New(set, interceptor.WithObserver(interceptor.Observer{CallEnd: func(ctx context.Context, e interceptor.CallEnd) {
		if n, counts := ctx.Value(attemptsKey{}).(*int); counts {
			*n = e.Attempts
		}
	}}))
	if err != nil {
		return nil, err
	}
	fixed := manual.NewBuilderWithScheme("vanish")
	var state resolver.State
	for _, a := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: net.JoinHostPort(a, port)})
	}
	fixed.InitialState(state)
	options := append(r.DialOptions(), grpc.WithResolvers(fixed), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(c.dial))
	c.conn, err = grpc.NewClient("vanish:///"+strings.Join(addresses, ","), append(options, s.options...)...)
	return c, err
}

// dial counts connections. They are TCP's own, whose timeout gRPC sets.
func (c *client) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dials++
	}
	return conn, err
}

func (c *client) dialled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dials
}

// run makes calls until the context ends.
func (c *client) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		running.Go(func() {
			call := ended{began: time.Now()}
			ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), attemptsKey{}, &call.attempts), patience)
			defer cancel()
			call.ok = c.conn.Invoke(ctx, method, c.request, new(wrapperspb.BytesValue)) == nil
			c.mu.Lock()
			defer c.mu.Unlock()
			c.calls = append(c.calls, call)
		})
	}
}

// figures are those of the calls of a client that begin in one phase.
type figures struct{ success, perCall float64 }

// since returns the figures of each phase after the trouble, and how long after its begin the last call began that failed.
func (c *client) since(trouble time.Time) (list []figures, last time.Duration) {
	from := time.Duration(0)
	for _, to := range phases {
		calls, good, attempts := 0, 0, 0
		for _, e := range c.calls {
			at := e.began.Sub(trouble)
			if at < from || at >= to {
				continue
			}
			calls++
			attempts += e.attempts
			if e.ok {
				good++
			} else {
				last = max(last, at)
			}
		}
		list = append(list, figures{100 * float64(good) / float64(max(calls, 1)), float64(attempts) / float64(max(calls, 1))})
		from = to
	}
	return list, last
}

// row has the clients of a setting.
type row struct {
	setting
	first, inTurn *client // of three servers, one of which vanishes: pick_first, and round_robin with retries elsewhere
	steady        []*client
}

// steadies are clients that should keep their connections.
var steadies = []struct {
	address string
	request int
}{{briefly, 0}, {longer, 0}, {pausing, 0}, {pausing, large}}

func newRow(s setting) (r *row, err error) {
	r = &row{setting: s}
	if r.first, err = newClient(retries, s, 0, backends...); err != nil {
		return nil, err
	}
	if r.inTurn, err = newClient(elsewise+retries, s, 0, backends...); err != nil {
		return nil, err
	}
	for _, of := range steadies {
		c, err := newClient(retries, s, of.request, of.address)
		if err != nil {
			return nil, err
		}
		r.steady = append(r.steady, c)
	}
	return r, nil
}

func (r *row) clients() []*client { return append([]*client{r.first, r.inTurn}, r.steady...) }

// lost returns how many connections the clients have lost that should keep theirs.
func (r *row) lost() (list []int) {
	for _, c := range r.steady {
		list = append(list, c.dialled()-1)
	}
	return list
}

// measure plays the troubles for all settings at once.
func measure(write bool) error {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	s, err := newServers()
	if err != nil {
		return err
	}
	defer s.stop()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var rows []*row
	var running sync.WaitGroup
	for _, keepalive := range timeouts() {
		r, err := newRow(keepalive)
		if err != nil {
			return err
		}
		rows = append(rows, r)
		for _, c := range r.clients() {
			running.Go(func() { c.run(ctx) })
		}
	}
	time.Sleep(calm)
	trouble := time.Now()
	for _, event := range []struct {
		at    time.Duration
		order string
	}{
		{0, orderDrop + " " + vanishing},
		{0, orderDrop + " " + briefly},
		{0, orderDrop + " " + longer},
		{0, orderPause},
		{brief, orderKeep + " " + briefly},
		{long, orderKeep + " " + longer},
		{pause, orderWake},
	} {
		time.Sleep(time.Until(trouble.Add(event.at)))
		if err := s.order(event.order); err != nil {
			return err
		}
	}
	time.Sleep(time.Until(trouble.Add(phases[len(phases)-1])))
	stop()
	running.Wait()
	return report(rows, trouble, write)
}

// report prints the table, and checks the bounds of the default.
func report(rows []*row, trouble time.Time, write bool) error {
	var table strings.Builder
	fmt.Fprintf(&table, "`make vanish` ran on %s:\n\n", time.Now().UTC().Format(time.DateOnly))
	table.WriteString("| timeout | `pick_first` | `round_robin`, retries elsewhere | connections lost by an interruption of " +
		"3 s, of 8 s, by a pause of 10 s |\n")
	table.WriteString("| --- | --- | --- | --- |\n")
	var failed error
	for _, r := range rows {
		first, last := r.first.since(trouble)
		inTurn, lastInTurn := r.inTurn.since(trouble)
		lost := r.lost()
		fmt.Fprintf(&table, "| %s | %s | %s | %d, %d, %d and %d |\n",
			r.name, line(first, last), line(inTurn, lastInTurn), lost[0], lost[1], lost[2], lost[3])
		end := len(phases) - 1
		if r.bounded && (first[end].success < 95 || inTurn[end].success < 95 || inTurn[end].perCall > 1.05 || slices.Max(lost) > 0) {
			failed = fmt.Errorf("%s: want at least 95 %% and at most 1.05 requests a call from %v on, and no connection "+
				"lost by the others", r.name, phases[end-1])
		}
	}
	fmt.Print(table.String())
	if failed != nil || !write {
		return failed
	}
	return writeTable(table.String())
}

func line(list []figures, last time.Duration) string {
	cells := make([]string, 0, len(list)+1)
	for _, f := range list {
		cells = append(cells, fmt.Sprintf("%.0f %%, %.2f", f.success, f.perCall))
	}
	if list[len(list)-1].success < 95 {
		return strings.Join(append(cells, "still failing"), " · ")
	}
	return strings.Join(append(cells, fmt.Sprintf("%.1f s", last.Seconds())), " · ")
}

const (
	page       = "vanish/results.md"
	begin, end = "<!-- vanish -->\n", "<!-- /vanish -->"
)

// writeTable writes the table between its marks.
func writeTable(table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, _ := strings.Cut(string(text), begin)
	_, rest, found := strings.Cut(rest, end)
	if !found {
		return fmt.Errorf("%s lacks the marks of the table", page)
	}
	return os.WriteFile(page, []byte(head+begin+table+end+rest), 0o600)
}
