// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

// Package hang plays a hang over real connections: three backends, each a process of its own, of which one is stopped by SIGSTOP, so that
// its connections stay open; a service in the middle, with the Retrier; and users with deadlines.
package hang

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/observe/debugpage"
	"github.com/stagger-go/stagger/observe/otelstagger"
	"github.com/stagger-go/stagger/policy"
)

const (
	get    = "/acme.orders.v1.OrderService/GetOrder"    // the policy names it: idempotent
	create = "/acme.orders.v1.OrderService/CreateOrder" // not declared idempotent
	find   = "/acme.orders.v1.OrderService/FindOrder"   // ends with NOT_FOUND
	watch  = "/acme.orders.v1.OrderService/WatchOrder"  // takes long, and its users leave

	deadline = 500 * time.Millisecond // of users
	takes    = 5 * time.Millisecond   // a backend, for a call

	addressOfBackend = "STAGGER_HANG_BACKEND" // in its environment
)

func TestMain(m *testing.M) {
	if address := os.Getenv(addressOfBackend); address != "" {
		if err := serveBackend(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveBackend is the process of a backend.
func serveBackend(address string) error {
	lis, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	return serve(func(ctx context.Context, method string) error {
		answer := time.After(takes)
		if method == watch {
			answer = nil
		}
		select {
		case <-answer:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
		if method == find {
			return status.Error(codes.NotFound, "no such order")
		}
		return nil
	}).Serve(lis)
}

// serve returns a server that answers any unary call with an empty message, or with the error that handle returns.
func serve(handle func(ctx context.Context, method string) error, options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
			return err
		}
		if err := handle(stream.Context(), method); err != nil {
			return err
		}
		return stream.SendMsg(new(emptypb.Empty))
	}))...)
}

// trial is a chain: users, the service in the middle, and its backends.
type trial struct {
	backends  []*testkit.Process
	addresses []string
	retrier   *interceptor.Retrier
	reader    *sdk.ManualReader
	page      http.Handler
	log       *lines
	users     *grpc.ClientConn
}

// start starts the chain, and calls until each backend has answered. The policy file names the load balancing.
func start(t *testing.T, backends int, file string) *trial {
	t.Helper()
	s := &trial{reader: sdk.NewManualReader(), log: new(lines)}
	addresses := manual.NewBuilderWithScheme("hang")
	var state resolver.State
	self := testkit.Must(os.Executable())(t)
	for range backends {
		address := fmt.Sprintf("127.0.0.1:%d", testkit.Port(t))
		s.backends = append(s.backends, testkit.StartProcess(t, nil, []string{addressOfBackend + "=" + address}, self))
		s.addresses = append(s.addresses, address)
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
	}
	addresses.InitialState(state)

	set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
	s.retrier = testkit.Must(interceptor.New(set,
		otelstagger.WithMetrics(sdk.NewMeterProvider(sdk.WithReader(s.reader)), otelstagger.Backends(), otelstagger.Methods(func(string) bool { return true })),
		interceptor.WithObserver(observe.Slog(slog.New(slog.NewTextHandler(s.log, nil))))))(t)
	s.page = debugpage.Config{}.Handler(s.retrier)
	insecurely := grpc.WithTransportCredentials(insecure.NewCredentials())
	below := testkit.Must(grpc.NewClient("hang:///backends", append(s.retrier.DialOptions(), insecurely, grpc.WithResolvers(addresses))...))(t)
	t.Cleanup(func() { _ = below.Close() })

	lis := testkit.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	middle := serve(func(ctx context.Context, method string) error {
		return below.Invoke(ctx, method, new(emptypb.Empty), new(emptypb.Empty))
	}, s.retrier.ServerOptions()...)
	served := make(chan error, 1)
	go func() { served <- middle.Serve(lis) }()
	t.Cleanup(func() {
		middle.Stop()
		<-served
	})
	s.users = testkit.Must(grpc.NewClient(lis.Addr().String(), insecurely))(t)
	t.Cleanup(func() { _ = s.users.Close() })
	for _, backend := range s.addresses {
		s.awaitAnswer(t, backend)
	}
	return s
}

// awaitAnswer waits until a backend answers.
func (s *trial) awaitAnswer(t *testing.T, backend string) {
	t.Helper()
	conn := testkit.Must(grpc.NewClient(backend, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	testkit.NoError(t, conn.Invoke(ctx, get, new(emptypb.Empty), new(emptypb.Empty), grpc.WaitForReady(true)))
}

// stop stops a backend by SIGSTOP: its connections stay open, and nothing answers.
func (s *trial) stop(t *testing.T, backend int) {
	t.Helper()
	s.backends[backend].Signal(t, syscall.SIGSTOP)
}

// load is what users call: so many calls a second of each method.
type load map[string]int

// usual is mostly reads.
var usual = load{get: 90, create: 10}

// leaves is when the users of watch leave.
const leaves = 30 * time.Millisecond

// call has users call for a while, and returns how many of the calls of each method have failed. NOT_FOUND is an answer, and the end of a
// call whose user has left is not a failure.
func (s *trial) call(t *testing.T, l load, length time.Duration) (calls, failed map[string]int) {
	t.Helper()
	counts := map[string]*[2]atomic.Int64{}
	var running sync.WaitGroup
	for method, rate := range l {
		n := new([2]atomic.Int64)
		counts[method] = n
		running.Go(func() {
			every := time.NewTicker(time.Second / time.Duration(rate))
			defer every.Stop()
			for range int(length.Seconds() * float64(rate)) {
				<-every.C
				running.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					defer cancel()
					if method == watch {
						time.AfterFunc(leaves, cancel)
					}
					n[0].Add(1)
					switch status.Code(s.users.Invoke(ctx, method, new(emptypb.Empty), new(emptypb.Empty))) {
					case codes.OK, codes.NotFound, codes.Canceled:
					default:
						n[1].Add(1)
					}
				})
			}
		})
	}
	running.Wait()
	calls, failed = map[string]int{}, map[string]int{}
	for method, n := range counts {
		calls[method], failed[method] = int(n[0].Load()), int(n[1].Load())
	}
	return calls, failed
}

// end is how calls below the service in the middle have ended, as its metrics count them.
type end struct{ method, code, reason, slow string }

// ends reads the count of ended calls.
func (s *trial) ends(t *testing.T) map[end]int {
	t.Helper()
	list := map[end]int{}
	for labels, n := range s.counter(t, "stagger.client.calls") {
		list[end{labels("grpc.method"), labels("grpc.status"), labels("reason"), labels("slow")}] += n
	}
	return list
}

// attemptEnd is how attempts at a backend have ended.
type attemptEnd struct{ backend, code, slow string }

// attemptEnds reads the count of ended attempts.
func (s *trial) attemptEnds(t *testing.T) map[attemptEnd]int {
	t.Helper()
	list := map[attemptEnd]int{}
	for labels, n := range s.counter(t, "stagger.client.attempts") {
		list[attemptEnd{labels("stagger.backend"), labels("grpc.status"), labels("slow")}] += n
	}
	return list
}

// counter reads a counter, and returns the labels and the value of each of its series.
func (s *trial) counter(t *testing.T, name string) iter.Seq2[func(label string) string, int] {
	t.Helper()
	var all metricdata.ResourceMetrics
	testkit.NoError(t, s.reader.Collect(t.Context(), &all))
	return func(yield func(func(string) string, int) bool) {
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				sum, ok := m.Data.(metricdata.Sum[int64])
				if !ok || m.Name != name {
					continue
				}
				for _, p := range sum.DataPoints {
					label := func(key string) string {
						value, _ := p.Attributes.Value(attribute.Key(key))
						return value.AsString()
					}
					if !yield(label, int(p.Value)) {
						return
					}
				}
			}
		}
	}
}

// state reads the debug page's data.
func (s *trial) state(t *testing.T, into any) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/debug/stagger/state.json", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})))
	s.page.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	testkit.NoError(t, json.Unmarshal(w.Body.Bytes(), into))
}

// lines is a log.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
