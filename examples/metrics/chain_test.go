// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// orderService is the environment variable that makes the test's binary the order service, a process of its own. It is
// the address of the stock service.
const orderService = "STAGGER_TEST_STOCK"

func TestMain(m *testing.M) {
	if stock := os.Getenv(orderService); stock != "" {
		if err := serveOrders(stock); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// brief is the policy of both clients, by which an outage is old after a second.
const brief = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    timeout: 2s
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE],
      perAttemptTimeout: 0.2s, maxConnectionWait: 0.3s}
`

func dialTCP(address string) (*client, error) {
	set, err := policy.Parse("retry.yaml", []byte(brief))
	if err != nil {
		return nil, err
	}
	return dial(address, set, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// serveOrders serves GetOrder, for which it calls the stock service. It prints its address and that of its metrics, and ends
// with its standard input.
func serveOrders(stock string) error {
	c, err := dialTCP(stock)
	if err != nil {
		return err
	}
	server, err := testserver.New(testserver.TCP(), testserver.Keep(0), testserver.ServerOptions(c.retrier.ServerOptions()...))
	if err != nil {
		return err
	}
	defer server.Close()
	server.Default(testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		return testserver.FailStatus(status.Convert(c.conn.Invoke(ctx, orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{})))
	}))
	web := httptest.NewServer(c.metrics())
	defer web.Close()
	fmt.Println(server.Addr(), web.URL)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return c.close()
}

// startOrders starts the order service.
func startOrders(t *testing.T, stock string) (address, metrics string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), orderService+"="+stock), t.Output()
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	if _, err := fmt.Fscan(stdout, &address, &metrics); err != nil {
		t.Fatal(err)
	}
	return address, metrics
}

// series are the series of a process that the alerts look at, by name and labels.
type series map[string]float64

func scrape(t *testing.T, url string) series {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := series{}
	for line := range strings.Lines(string(text)) {
		i := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, "stagger_") || i < 0 {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64); err == nil {
			found[line[:i]] = v
		}
	}
	return found
}

// grown is by how much series of a metric with all these labels have grown since before.
func (s series) grown(before series, metric string, labels ...string) (sum float64) {
series:
	for name, v := range maps.All(s) {
		if !strings.HasPrefix(name, metric+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(name, label) {
				continue series
			}
		}
		sum += v - before[name]
	}
	return sum
}

// A gateway calls the order service, a process of its own, whose stock service is dead. What alerts look at grows at the
// order service, for the target that is broken, and not at the gateway. alerts_test.yaml has what the alerts make of it.
func TestChain_Alerts(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0") // an address at which nobody listens, soon
	if err != nil {
		t.Fatal(err)
	}
	stock := lis.Addr().String()
	lis.Close()
	address, metrics := startOrders(t, stock)
	gateway, err := dialTCP(address)
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.close()
	web := httptest.NewServer(gateway.metrics())
	defer web.Close()

	callFor(t, gateway.conn, 1500*time.Millisecond) // until the outage is old
	gatewayBefore, ordersBefore := scrape(t, web.URL), scrape(t, metrics)
	calls := callFor(t, gateway.conn, time.Second)
	gatewayAfter, ordersAfter := scrape(t, web.URL), scrape(t, metrics)

	if n := ordersAfter.grown(ordersBefore, "stagger_client_decisions_total", `reason="not_connected"`, `target="dns:///`+stock); n != float64(calls) {
		t.Errorf("not_connected for stock: %v; want each of %d calls", n, calls)
	}
	if n := gatewayAfter.grown(gatewayBefore, "stagger_client_decisions_total", `reason="pushback_stop"`); n != float64(calls) {
		t.Errorf("pushback_stop at the gateway: %v; want each of %d calls", n, calls)
	}
	for _, of := range [][]string{
		{"stagger_client_decisions_total", `reason="not_connected"`},
		{"stagger_client_decisions_total", `reason="too_many_waiting"`},
		{"stagger_client_decisions_total", `reason="retry"`},
		{"stagger_client_decisions_total", `reason="hedge"`},
		{"stagger_budget_denied_total"},
		{"stagger_client_call_retries_count", `code="UNAVAILABLE"`},
	} {
		if n := gatewayAfter.grown(gatewayBefore, of[0], of[1:]...); n != 0 {
			t.Errorf("%s has grown by %v at the gateway, for the target above the broken one", of, n)
		}
	}
}

// callFor makes 100 calls a second, all of which fail, and returns how many.
func callFor(t *testing.T, conn *grpc.ClientConn, length time.Duration) (n int) {
	t.Helper()
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		n++
		calls.Go(func() {
			if conn.Invoke(t.Context(), orders.GetOrder, &emptypb.Empty{}, &emptypb.Empty{}) == nil {
				t.Error("a call is answered")
			}
		})
	}
	return n
}
