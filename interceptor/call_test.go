// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A server is down when a call begins, and back after some time. gRPC reconnects about a second later.
func TestConnectionWait(t *testing.T) {
	const never = time.Hour
	hedging := spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, HedgingDelay: time.Minute, NonFatalStatusCodes: []codes.Code{codes.Unavailable}, Budget: "NONE"}}
	for _, row := range []struct {
		name     string
		change   func(*spec.Policy)
		method   string
		back     time.Duration
		deadline time.Duration // 0: a minute; -1: none
		opts     []grpc.CallOption
		attempts int
		reason   policy.Reason // "": the call succeeds
		atLeast  time.Duration // minimum duration of the call
		atMost   time.Duration
	}{
		{name: "until the server is back", back: 500 * ms, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second},
		{name: "without a deadline, too", back: 500 * ms, deadline: -1, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second},
		{name: "a method that is not safe, since nothing was sent", method: create, back: 500 * ms, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second},
		{name: "no longer than maxConnectionWait", back: never, attempts: 1, reason: policy.ReasonNotConnected, atLeast: 3 * time.Second, atMost: 3 * time.Second},
		{
			name: "a maxConnectionWait of its own", back: never, attempts: 1, reason: policy.ReasonNotConnected, atLeast: time.Second, atMost: time.Second,
			change: func(s *spec.Policy) { s.MaxConnectionWait = new(time.Second) },
		},
		{name: "not past the deadline", back: never, deadline: time.Second, attempts: 1, reason: policy.ReasonNotConnected, atLeast: 999 * ms, atMost: 999 * ms},
		{
			name: "not if maxConnectionWait is 0", back: 500 * ms, attempts: 1, reason: policy.ReasonNotConnected,
			change: func(s *spec.Policy) { s.MaxConnectionWait = new(0 * ms) },
		},
		{
			name: "not if waitForReady is false", back: 500 * ms, attempts: 4, reason: policy.ReasonAttemptsExhausted, atMost: 70 * ms,
			change: func(s *spec.Policy) { s.WaitForReady = new(false) },
		},
		{
			name: "not if the call says otherwise: it fails at once", back: 500 * ms, attempts: 1, reason: policy.ReasonNotConnected,
			opts: []grpc.CallOption{grpc.WaitForReady(false)},
		},
		{
			name: "in gRPC if the call says so", back: 5 * time.Second, attempts: 1, atLeast: 5 * time.Second, atMost: 10 * time.Second,
			opts: []grpc.CallOption{grpc.WaitForReady(false), grpc.WaitForReady(true)},
		},
		{
			name: "before the next attempt of a hedging policy", back: 500 * ms, attempts: 2, atLeast: 500 * ms, atMost: 2 * time.Second,
			change: func(s *spec.Policy) { *s = hedging },
		},
	} {
		for _, kind := range []string{"unary", "stream"} {
			t.Run(kind+"/"+row.name, func(t *testing.T) {
				retry := plain()
				retry.Backoff.Initial, retry.Backoff.Multiplier = 10*ms, 1
				c := config(retry)
				if row.change != nil {
					for i := range c.Methods {
						row.change(&c.Methods[i].Policy)
					}
				}
				method := row.method
				if method == "" {
					method = get
				}
				play(t, c, func(t *testing.T, s scene) {
					s.leave()
					if row.back != never {
						time.AfterFunc(row.back, s.Up)
					}
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if row.deadline >= 0 {
						ctx, cancel = context.WithTimeout(ctx, cmp.Or(row.deadline, time.Minute))
					}
					defer cancel()
					began := time.Now()
					err := s.once(ctx, kind, method, row.opts...)
					took := time.Since(began)
					synctest.Wait()
					if reasonOf(err) != row.reason || len(s.attempts) != row.attempts {
						t.Errorf("%v (%s) after %d attempts; want %q after %d", err, reasonOf(err), len(s.attempts), row.reason, row.attempts)
					}
					if row.reason != "" && status.Code(err) != codes.Unavailable {
						t.Errorf("%v; want the error at hand", err)
					}
					if took < row.atLeast || took > row.atMost {
						t.Errorf("took %v; want %v to %v", took, row.atLeast, row.atMost)
					}
					if n := s.retrier.State().Waiting.All(); n != 0 {
						t.Errorf("%d calls still wait", n)
					}
				})
			})
		}
	}
}

// once makes one call of a kind, and returns its error.
func (s scene) once(ctx context.Context, kind, method string, opts ...grpc.CallOption) error {
	return exchange(ctx, s.conn, map[string]*grpc.StreamDesc{"stream": serverStream}[kind], method, opts...)
}

// A call whose attempts may be slow notices a new connection as soon as any other.
func TestConnectionWait_Watched(t *testing.T) {
	retry := plain()
	retry.PerAttemptTimeout = time.Second
	for name, c := range map[string]spec.Config{"perAttemptTimeout": config(retry), "hedges": hedged()} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.leave()
				time.AfterFunc(300*ms, s.Up)
				begun := time.Now()
				if _, err := s.call(t.Context(), get); err != nil || time.Since(begun) > 1500*ms {
					t.Errorf("%v after %v; want a success when the connection is back", err, time.Since(begun))
				}
			})
		})
	}
}

// A dead target leaves half of the wait slots to the others.
func TestConnectionWait_OneTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		retry := plain()
		retry.Backoff.Initial, retry.Backoff.Multiplier = 10*ms, 1
		r := mustNew(t, mustSet(t, waiting(config(retry), 10)), quiet)
		dead := testserver.Start(t)
		dead.Down()
		conn := dead.Dial(t, r.DialOptions()...)
		var calls sync.WaitGroup
		reasons := map[policy.Reason]int{}
		var mu sync.Mutex
		for range 10 {
			calls.Go(func() {
				err := conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue))
				mu.Lock()
				defer mu.Unlock()
				reasons[reasonOf(err)]++
			})
		}
		time.Sleep(time.Second)
		if n := r.State().Waiting.All(); n != 5 {
			t.Errorf("%d calls wait; want half of 10", n)
		}
		calls.Wait()
		if reasons[policy.ReasonTooManyWaiting] != 5 || reasons[policy.ReasonNotConnected] != 5 {
			t.Errorf("%v; want 5 calls to wait in vain, and 5 not to wait", reasons)
		}
	})
}

// outage is a single backend that is away for a time, under 100 calls a second with the default policy and budget.
type outage struct {
	mu       sync.Mutex
	began    time.Time
	arrivals []time.Duration
	failed   map[policy.Reason]int
	longest  time.Duration // that a failed call took
}

// play makes calls; the backend leaves 5 ms after 500 of them. A call has the deadline, unless that is 0.
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
	server.On("*", testserver.OK(wrapperspb.String("here")).Delay(20*ms))
	var drawn atomic.Int64
	evenly := interceptor.WithRandom(func() float64 { return math.Mod(float64(drawn.Add(1))*math.Phi, 1) })
	// gRPC connects again 1 s, 2.6 s and 5.16 s after it has lost the connection, always.
	steady := grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, MaxDelay: time.Minute}})
	conn := server.Dial(t, append(mustNew(t, mustSet(t, config(policytest.UsualRetry())), quiet, evenly).DialOptions(), steady)...)
	var running sync.WaitGroup
	for i := range calls {
		if i == 500 {
			time.AfterFunc(5*ms, func() { // no call begins or ends in the moment in which gRPC connects
				server.Down()
				time.AfterFunc(away, server.Up)
			})
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

// TestConnectionWait_Outage checks that nearly no call fails in a short outage: calls that wait for the connection are no
// load, and cost nothing. Afterwards, they return as fast as the answers allow, which are fast here: most of the 100 or 220 calls that wait
// arrive in the first 200 ms, in which 20 arrive normally.
func TestConnectionWait_Outage(t *testing.T) {
	testkit.Long(t)
	for _, row := range []struct {
		name     string
		away     time.Duration
		deadline time.Duration
		failures int // of 2,000, at most
		first    int // arrivals in the first 200 ms, at most
		peak     int // and in any 200 ms
	}{
		{"300 ms", 300 * ms, 10 * time.Second, 20, 120, 120},
		{"950 ms", 950 * ms, 10 * time.Second, 20, 120, 120},
		{"950 ms, no deadlines", 950 * ms, 0, 20, 120, 120},
		{"950 ms, deadlines of 2 s", 950 * ms, 2 * time.Second, 20, 120, 120},
		{"2 s, which gRPC's own backoff prolongs to 2.6 s", 2 * time.Second, 10 * time.Second, 20, 250, 250},
		{"3 s, which gRPC's own backoff prolongs beyond the age of 5 s", 3 * time.Second, 10 * time.Second, 520, 20, 20},
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

// A connection that can never be made: the caller gets the real error.
func TestConnectionWait_Cause(t *testing.T) {
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
					conn := over(t, mustNew(t, mustSet(t, config(policytest.UsualRetry())), quiet), lis,
						grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{ServerName: "orders.acme.test", RootCAs: roots})))
					began := time.Now()
					err := scene{conn: conn}.once(t.Context(), kind, get)
					if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), row.want) {
						t.Errorf("%v; want %s", err, row.want)
					}
					if took := time.Since(began); reasonOf(err) != policy.ReasonNotConnected || took > 3100*ms {
						t.Errorf("%s after %v; want not_connected by 3.1 s, with the backoff", reasonOf(err), took)
					}
				})
			})
		}
	}
}

// certificate returns a certificate for a host, and a pool that trusts it.
func certificate(t *testing.T, host string, expired bool) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	der := testkit.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	parsed := testkit.Must(x509.ParseCertificate(der))(t)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// Connections to one target share a balance however the target is written, and events name it as gRPC's metrics do.
func TestTarget_Canonical(t *testing.T) {
	retry := plain()
	retry.Budget = ""
	play(t, config(retry), func(t *testing.T, s scene) {
		const canonical = "dns:///127.0.0.1:1"
		for _, target := range []string{"127.0.0.1:1", canonical} {
			conn, err := grpc.NewClient(target, append(s.retrier.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithChainUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
					return nil // nothing is dialled
				}))...)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				t.Error(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		if got := inUse(s.retrier); len(got) != 1 || got[0].Target != canonical {
			t.Errorf("%+v; want one of %s", got, canonical)
		}
		for _, c := range s.calls {
			if c.Target != canonical {
				t.Errorf("%s; want %s", c.Target, canonical)
			}
		}
	})
}
