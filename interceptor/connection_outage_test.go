// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// outage is a single backend that is away for a time, under 100 calls a second with the default policy and budget.
type outage struct {
	mu       sync.Mutex
	began    time.Time
	arrivals []time.Duration
	failed   map[policy.Reason]int
	longest  time.Duration // that a failed call took
}

// play makes calls; the backend leaves after 500 of them. A call has the deadline, unless that is 0.
func (o *outage) play(t *testing.T, calls int, away, deadline time.Duration) {
	t.Helper()
	o.began, o.failed = time.Now(), map[policy.Reason]int{}
	server := testserver.Start(t, testserver.Observe(func(a testserver.Attempt) {
		if a.End.IsZero() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.arrivals = append(o.arrivals, time.Since(o.began))
		}
	}))
	server.Default(testserver.OK(wrapperspb.String("here")).Delay(20 * ms))
	var drawn atomic.Int64
	evenly := interceptor.WithRandom(func() float64 { return math.Mod(float64(drawn.Add(1))*math.Phi, 1) })
	conn := server.Dial(t, mustNew(t, mustSet(t, config(policy.DefaultRetry())), quiet, evenly).DialOptions()...)
	var running sync.WaitGroup
	for i := range calls {
		if i == 500 {
			server.Down()
			time.AfterFunc(away, server.Up)
		}
		running.Go(func() {
			ctx := t.Context()
			if deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline)
				defer cancel()
			}
			began := time.Now()
			if err := conn.Invoke(ctx, get, wrapperspb.String(""), new(wrapperspb.StringValue)); err != nil {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.failed[reasonOf(err)]++
				o.longest = max(o.longest, time.Since(began))
			}
		})
		time.Sleep(10 * ms)
	}
	running.Wait()
}

// afterwards counts the arrivals since the backend was back, by 200 ms from the first one.
func (o *outage) afterwards(away time.Duration) []int {
	slices.Sort(o.arrivals)
	i := slices.IndexFunc(o.arrivals, func(at time.Duration) bool { return at >= 5*time.Second+away })
	var counts []int
	for _, at := range o.arrivals[i:] {
		n := int((at - o.arrivals[i]) / (200 * ms))
		for len(counts) <= n {
			counts = append(counts, 0)
		}
		counts[n]++
	}
	return counts
}

// TestConnectionWaitInAnOutage has nearly no call fail in a short outage: those that wait for the connection are no
// load, and cost nothing. When it is back, they do not come back together: 200 ms usually bring 20 calls.
func TestConnectionWaitInAnOutage(t *testing.T) {
	for _, row := range []struct {
		name     string
		away     time.Duration
		deadline time.Duration
		failures int // of 2,000, at most
		first    int // arrivals in the first 200 ms, at most
		peak     int // and in any
	}{
		{"300 ms", 300 * ms, 10 * time.Second, 20, 26, 40},
		{"1 s", time.Second, 10 * time.Second, 20, 26, 40},
		{"1 s, no deadlines", time.Second, 0, 20, 26, 40},
		{"1 s, short deadlines", time.Second, 2 * time.Second, 20, 40, 70},
		{"3 s, which gRPC's own backoff prolongs to 5 s", 3 * time.Second, 10 * time.Second, 260, 26, 65},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var o outage
				o.play(t, 2000, row.away, row.deadline)
				after := o.afterwards(row.away)
				t.Logf("failed %v; arrivals %v", o.failed, after[:20])
				if n := o.failed[policy.ReasonNotConnected]; n > row.failures || len(o.failed) > 1 || len(o.failed) == 1 && n == 0 {
					t.Errorf("%v calls failed; want at most %d, and those not connected", o.failed, row.failures)
				}
				if after[0] > row.first || slices.Max(after) > row.peak {
					t.Errorf("%d arrivals in the first 200 ms, then up to %d; want at most %d, then %d", after[0], slices.Max(after), row.first, row.peak)
				}
				if o.longest > 3100*ms {
					t.Errorf("a call that failed took %v; want 3.1 s at most", o.longest)
				}
			})
		})
	}
}

// A backend that refuses connections for longer than anybody waits.
func TestConnectionWaitInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o outage
		o.play(t, 500+2500, 30*time.Second, 0)
		n := o.failed[policy.ReasonNotConnected]
		if len(o.failed) != 1 || n < 2400 || o.longest > 3100*ms {
			t.Errorf("%v, after %v at most; want nearly 2,500 calls, each by 3.1 s, not connected", o.failed, o.longest)
		}
	})
}

// A connection that can never be made: the caller gets the real error.
func TestConnectionWaitShowsTheCause(t *testing.T) {
	for _, row := range []struct {
		name, host string
		expired    bool
		want       string
	}{
		{"wrong host", "stock.acme.test", false, "x509: certificate is valid for stock.acme.test, not orders.acme.test"},
		{"expired certificate", "orders.acme.test", true, "x509: certificate has expired or is not yet valid"},
	} {
		for _, kind := range []string{"unary", "stream"} {
			t.Run(row.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cert, roots := certificate(t, row.host, row.expired)
					lis := bufconn.Listen(1 << 16)
					server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
					go func() { _ = server.Serve(lis) }()
					defer server.Stop()
					conn, err := grpc.NewClient("passthrough:///orders", append(mustNew(t, mustSet(t, config(policy.DefaultRetry())), quiet).DialOptions(),
						grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{ServerName: "orders.acme.test", RootCAs: roots})),
						grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					began := time.Now()
					err = scene{conn: conn}.once(t.Context(), kind, get)
					if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), row.want) {
						t.Errorf("%v; want %s", err, row.want)
					}
					if took := time.Since(began); reasonOf(err) != policy.ReasonNotConnected || took > 3*time.Second {
						t.Errorf("%s after %v; want not_connected by 3 s", reasonOf(err), took)
					}
				})
			})
		}
	}
}

// certificate is one for a host, and who trusts it.
func certificate(t *testing.T, host string, expired bool) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
