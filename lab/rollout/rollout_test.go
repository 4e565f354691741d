// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package rollout plays rolling updates of pods behind a headless Service: gRPC's own DNS resolver, in virtual time.
package rollout

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver/dns"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) {
	// The first look-up of a process makes a channel, which look-ups in virtual time may use, but must not make.
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	_, _ = (&net.Resolver{PreferGo: true, Dial: refuse}).LookupHost(context.Background(), service)
	goleak.VerifyTestMain(m)
}

const (
	service  = "orders.shop.svc.cluster.local."
	port     = "50051"
	replicas = 3

	perSecond = 10          // calls
	starting  = time.Second // a pod is ready after this time

	usualInterval = 30 * time.Second // gRPC's
)

// cluster has the pods of a Deployment, whose addresses its Service has while they are ready.
type cluster struct {
	mu    sync.Mutex
	pods  map[string]*bufconn.Listener // by address
	names records
}

// start makes a pod, which serves at once and is ready.
func (c *cluster) start(ip string) (stop func()) {
	lis := bufconn.Listen(64 << 10)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		return stream.SendMsg(&emptypb.Empty{})
	}))
	go func() { _ = server.Serve(lis) }()
	c.mu.Lock()
	c.pods[net.JoinHostPort(ip, port)] = lis
	c.mu.Unlock()
	c.names.add(ip)
	return func() {
		c.names.remove(ip)
		c.mu.Lock()
		delete(c.pods, net.JoinHostPort(ip, port))
		c.mu.Unlock()
		server.GracefulStop()
	}
}

func (c *cluster) dial(ctx context.Context, address string) (net.Conn, error) {
	c.mu.Lock()
	lis := c.pods[address]
	c.mu.Unlock()
	if lis == nil {
		return nil, fmt.Errorf("dial tcp %s: connect: connection refused", address)
	}
	return lis.DialContext(ctx)
}

// update replaces the pods one after the other, as a Deployment does with maxSurge 1 and maxUnavailable 0: an old pod stops when a new one
// has been ready for minReady.
func (c *cluster) update(stopOld []func(), minReady time.Duration) (stopNew []func()) {
	for i, stop := range stopOld {
		time.Sleep(starting)
		stopNew = append(stopNew, c.start(fmt.Sprintf("10.0.1.%d", i+1)))
		time.Sleep(minReady)
		stop()
	}
	return stopNew
}

// play sends calls from some seconds before a rolling update until a minute after it, and returns how many there were, and how
// many failed. sinceResolved is the age of the client's addresses when the update begins.
func play(t *testing.T, sinceResolved, minReady time.Duration, options []grpc.DialOption) (calls, failed int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{pods: map[string]*bufconn.Listener{}}
		before := net.DefaultResolver
		net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: c.names.dial}
		defer func() { net.DefaultResolver = before }()
		var old []func()
		for i := range replicas {
			old = append(old, c.start(fmt.Sprintf("10.0.0.%d", i+1)))
		}
		conn := testkit.Must(grpc.NewClient("dns:///"+service+":"+port, append(slices.Clip(options),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(c.dial))...))(t)

		var mu sync.Mutex
		var group sync.WaitGroup
		over := make(chan struct{})
		group.Go(func() {
			ticks := time.NewTicker(time.Second / perSecond)
			defer ticks.Stop()
			for {
				select {
				case <-over:
					return
				case <-ticks.C:
				}
				calls++
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					err := conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}, interceptor.Idempotent())
					if err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
					}
				})
			}
		})
		time.Sleep(sinceResolved)
		pods := c.update(old, minReady)
		time.Sleep(time.Minute)
		close(over)
		group.Wait()
		testkit.NoError(t, conn.Close())
		for _, stop := range pods {
			stop()
		}
	})
	return calls, failed
}

// page returns the text of a page below docs.
func page(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile("../../docs/" + name))(t))
}

// guidePolicy returns the policy file of docs/set-up.md, in mode ENFORCE.
func guidePolicy(t *testing.T) *policy.Set {
	t.Helper()
	_, text, _ := strings.Cut(page(t, "set-up.md"), "```yaml newuser retry.yaml\n")
	text, _, _ = strings.Cut(text, "```")
	return testkit.Must(policy.Parse("retry.yaml", []byte(strings.Replace(text, "mode: OBSERVE\n", "", 1))))(t)
}

const grpcsOwn = `{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// A rolling update that is faster than gRPC asks DNS fails calls, whatever retries them: no pod is left that the client knows. With a shorter
// interval, or with pods that stay until clients have asked again, no call fails, whenever the client has asked before.
func TestRollout(t *testing.T) {
	for _, row := range []struct {
		name     string
		interval time.Duration // between two questions to DNS
		minReady time.Duration // minReadySeconds
		resolved []time.Duration
		fails    bool
	}{
		{"as it is", usualInterval, 0, []time.Duration{7 * time.Second}, true},
		{"minReadySeconds", usualInterval, 30 * time.Second, moments, false},
		{"SetMinResolutionInterval", time.Second, 0, moments, false},
	} {
		for _, client := range []string{"gRPC", "stagger"} {
			t.Run(row.name+"/"+client, func(t *testing.T) {
				options := []grpc.DialOption{grpc.WithDefaultServiceConfig(grpcsOwn)}
				if client == "stagger" {
					options = testkit.Must(interceptor.New(guidePolicy(t)))(t).DialOptions()
				}
				dns.SetMinResolutionInterval(row.interval)
				defer dns.SetMinResolutionInterval(usualInterval)
				for _, since := range row.resolved {
					calls, failed := play(t, since, row.minReady, options)
					says := fmt.Sprintf("<!-- lab/rollout -->%.0f<!-- / --> s", math.Round(float64(failed)/perSecond))
					switch {
					case row.fails && !strings.Contains(page(t, "kubernetes.md"), says):
						t.Errorf("docs/kubernetes.md lacks %q: %d of %d calls fail", says, failed, calls)
					case row.fails != (failed > 0):
						t.Errorf("%d of %d calls fail if the client asked DNS %v before; want that some fail: %t", failed, calls, since, row.fails)
					}
				}
			})
		}
	}
}

// moments are ages of a client's addresses when an update begins.
var moments = []time.Duration{time.Second, 15 * time.Second, 40 * time.Second}
