// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/repeat"
	"github.com/stagger-go/stagger/policy"
)

// etcdName is the library whose server is a program of Linux.
const etcdName = "etcd clientv3"

// order is the order of the page's table.
var order = []string{etcdName, "OTLP exporters", "Pub/Sub", "Bigtable", "Temporal SDK"}

// library is a client library with stagger's dial options.
type library struct {
	name, module string
	read, write  string // full methods: one that a policy names, and one that runs twice if it is retried blindly
	tame         bool   // the library's own retries can be turned off, or it has none
	headers      bool   // it reads headers first, which may commit a try before its last attempt
	tries        int    // number of calls of read in an outage that ends before the fourth, with the library's retries on

	serve func(t *testing.T) (address string)
	open  func(t *testing.T, target string, retries bool, dial ...grpc.DialOption) session
}

// session is a connected client of the library.
type session struct {
	happy       func(ctx context.Context) ([]string, error) // uses the library normally, and returns the results
	read, write func(ctx context.Context) error
	close       func()
}

const retryPolicy = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.001s, maxBackoff: 10s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}`

// text returns the policy file that names read, and thereby declares it idempotent.
func (l library) text() string {
	return fmt.Sprintf("methodConfig:\n  - {name: [{service: %s, method: %s}], %s}\n", path.Dir(l.read)[1:], path.Base(l.read), retryPolicy)
}

// service returns the policy file for the whole service of write, which declares no method idempotent.
func (l library) service(top string) string {
	return fmt.Sprintf("%s\nmethodConfig:\n  - {name: [{service: %s}], %s}\n", top, path.Dir(l.write)[1:], retryPolicy)
}

func retrier(t *testing.T, text string, options ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(text)))(t)
	return testkit.Must(interceptor.New(set, options...))(t)
}

var plaintext = grpc.WithTransportCredentials(insecure.NewCredentials())

// within returns a context with enough time for the library's behaviour in an outage.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// noLeaks fails the test if goroutines that it started are left at the end.
func noLeaks(t *testing.T) {
	t.Helper()
	old := goleak.IgnoreCurrent()
	// Pub/Sub leaves this goroutine of a subscriber behind, also without stagger.
	pubsub := goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler")
	t.Cleanup(func() { goleak.VerifyNone(t, old, pubsub) })
}

// test compares the library with and without stagger, and records the requests at the server.
func (l library) test(t *testing.T) {
	noLeaks(t)
	address := l.serve(t)
	l.compareHappy(t, address)
	l.repeat(t, address)
	keeps := l.compareError(t, address)

	own, off := "none", "cannot be switched off"
	if l.tries > 1 {
		own = l.outage(t, address, true, l.tries)
	}
	if l.tame {
		off = l.outage(t, address, false, 1)
	}
	bare := l.lost(t, address)
	safe := l.lost(t, address, interceptorsOnly(retrier(t, l.service("")))...)
	assumed := l.lost(t, address, interceptorsOnly(retrier(t, l.service("idempotency: ASSUME")))...)
	if safe != bare {
		t.Errorf("%s ran %d times after its answer was lost, with stagger %d times", l.write, bare, safe)
	}
	if assumed < 2 {
		t.Errorf("%s ran %d times though everything was assumed safe: the fault does nothing", l.write, assumed)
	}
	counted.add(l.name, fmt.Sprintf("| %s | %s | `%s` | %s | %s | %s | `%s`: %d → %d, %d |", l.name, version(t, l.module), path.Base(l.read),
		own, off, keeps, path.Base(l.write), bare, safe, assumed))
}

// compareHappy compares the results, requests and metadata of successful calls with those without stagger.
func (l library) compareHappy(t *testing.T, address string) {
	t.Helper()
	play := func(dial ...grpc.DialOption) (results []string, seen map[string]string) {
		f := newFront(t, address)
		s := l.open(t, f.target, true, append(dial, plaintext)...)
		defer s.close()
		results = testkit.Must(s.happy(within(t)))(t)
		return results, f.seen()
	}
	bare, want := play()
	results, got := play(interceptorsOnly(retrier(t, l.text()))...)
	if !slices.Equal(bare, results) {
		t.Errorf("results are %q\nwithout stagger %q", results, bare)
	}
	if !maps.Equal(want, got) {
		t.Errorf("requests and metadata are %q\nwithout stagger %q", got, want)
	}
}

// repeat finds that the method that the policy declares idempotent is: in repeat mode, nothing is reported.
func (l library) repeat(t *testing.T, address string) {
	t.Helper()
	r := retrier(t, l.text(), repeat.ForTests(nil), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
		if d.Field == "repeat" {
			t.Error(d)
		}
	}}))
	f := newFront(t, address)
	s := l.open(t, f.target, true, append(interceptorsOnly(r), plaintext)...)
	defer s.close()
	testkit.NoError(t, s.read(within(t)))
	for deadline := time.Now().Add(10 * time.Second); ; {
		n, _ := f.requests(l.read)
		if n >= 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d requests; want a second one", l.read, n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // until it is answered and compared
	r.Close()
}

// compareError compares the error of a call that is never retried with the one without stagger. It returns whether the error
// contains an [interceptor.Error].
func (l library) compareError(t *testing.T, address string) string {
	t.Helper()
	play := func(dial ...grpc.DialOption) error {
		f := newFront(t, address)
		s := l.open(t, f.target, true, append(dial, plaintext)...)
		defer s.close()
		f.fail(l.read, codes.InvalidArgument)
		err := s.read(within(t))
		if n, _ := f.requests(l.read); n != 1 || err == nil {
			t.Errorf("%d requests, %v; want 1 that fails", n, err)
		}
		return err
	}
	want, err := play(), play(interceptorsOnly(retrier(t, l.text()))...)
	if err.Error() != want.Error() || status.Code(err) != status.Code(want) {
		t.Errorf("the error is %q\nwithout stagger %q", err, want)
	}
	if _, ok := errors.AsType[*interceptor.Error](err); ok {
		return "yes"
	}
	return "no"
}

// outage counts the requests of one call in an outage that ends at the library's fourth call. Without stagger each of the
// library's calls is one request; with it, failed calls are four.
func (l library) outage(t *testing.T, address string, retries bool, tries int) string {
	t.Helper()
	play := func(dial ...grpc.DialOption) int {
		f := newFront(t, address)
		var n atomic.Int64
		count := func(method string) {
			if method == l.read && n.Add(1) == 4 {
				f.heal()
			}
		}
		dial = append([]grpc.DialOption{
			plaintext,
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				count(method)
				return invoker(ctx, method, req, reply, cc, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				count(method)
				return streamer(ctx, desc, cc, method, opts...)
			}),
		}, dial...)
		s := l.open(t, f.target, retries, dial...)
		defer s.close()
		f.fail(l.read, codes.Unavailable)
		err := s.read(within(t))
		if int(n.Load()) != tries || (err == nil) != (tries == 4) {
			t.Errorf("the library called %d times, want %d: %v", n.Load(), tries, err)
		}
		all, _ := f.requests(l.read)
		return all
	}
	bare, ours := play(), play(interceptorsOnly(retrier(t, l.text()))...)
	failing := tries
	if tries == 4 {
		failing = 3
	}
	most, few := tries+3*failing, ""
	if l.headers {
		few = "up to "
	}
	if bare != tries || ours > most || ours <= bare || ours < most && !l.headers {
		t.Errorf("own retries %t: %d requests, with stagger %d; want %d and %s%d", retries, bare, ours, tries, few, most)
	}
	return fmt.Sprintf("%d → %s%d", bare, few, most)
}

// lost counts how often write ran if the answer to its first request was lost.
func (l library) lost(t *testing.T, address string, dial ...grpc.DialOption) int {
	t.Helper()
	f := newFront(t, address)
	s := l.open(t, f.target, true, append(dial, plaintext)...)
	defer s.close()
	f.loseNext(l.write)
	_ = s.write(within(t)) // it fails unless the request is retried
	_, served := f.requests(l.write)
	return served
}
