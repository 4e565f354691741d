// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
)

// TestProxyAnswers checks docs/works-with.md with the real proxies: the codes of their own answers, and that idempotent calls
// are retried after them.
func TestProxyAnswers(t *testing.T) {
	required(t)
	evidence.uses("nginx", version(t, "nginx", "-v"))
	evidence.uses("HAProxy", version(t, "haproxy", "-v"))
	well := startBackend(t, newLedger(), time.Millisecond)
	slow := startBackend(t, newLedger(), 3*time.Second)
	dead := testkit.Port(t)
	resets := resetter(t)
	shown := table{header: []string{"setting", "answer", "code", "stagger's attempts"}}
	for _, row := range []struct {
		name     string
		start    func(t *testing.T) *proxy
		drain    int // earlier calls, which use up a limit
		code     codes.Code
		text     string // part of the error's
		attempts int    // of an idempotent call
	}{
		{"nginx, no backend", func(t *testing.T) *proxy { return nginx(t, "", "", dead) }, 0, codes.Unavailable, "502 (Bad Gateway)", 2},
		{"nginx, `grpc_read_timeout`", func(t *testing.T) *proxy { return nginx(t, "", "grpc_read_timeout 100ms;", slow.port) }, 0, codes.Unavailable, "504 (Gateway Timeout)", 2},
		{"nginx, `limit_req`", func(t *testing.T) *proxy {
			return nginx(t, "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;", "limit_req zone=one;", well.port)
		}, 1, codes.Unavailable, "503 (Service Unavailable)", 2},
		{"nginx, `limit_req_status 429`", func(t *testing.T) *proxy {
			return nginx(t, "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;", "limit_req zone=one; limit_req_status 429;", well.port)
		}, 1, codes.Unavailable, "429 (Too Many Requests)", 2},
		{"nginx, `error_page` in gRPC's form", func(t *testing.T) *proxy { return nginx(t, "", "error_page 502 = /unavailable;", dead) }, 0, codes.Unavailable, "desc = no backend", 2},
		{"nginx, a backend resets the stream", func(t *testing.T) *proxy { return nginx(t, "", "", resets) }, 0, codes.Unavailable, "502 (Bad Gateway)", 2},
		{"HAProxy, no backend", func(t *testing.T) *proxy { return haproxy(t, "retries 0", dead) }, 0, codes.Unavailable, "503 (Service Unavailable)", 2},
		{"HAProxy, `timeout server`", func(t *testing.T) *proxy { return haproxy(t, "timeout server 100ms", slow.port) }, 0, codes.Unavailable, "504 (Gateway Timeout)", 2},
		{"HAProxy, `http-request deny deny_status 429`", func(t *testing.T) *proxy { return haproxy(t, "http-request deny deny_status 429", well.port) }, 0, codes.Unavailable, "429 (Too Many Requests)", 2},
		{"HAProxy, `http-request return` in gRPC's form", func(t *testing.T) *proxy {
			return haproxy(t, `http-request return status 200 hdr grpc-status 14 hdr grpc-message "no backend" hdr grpc-retry-pushback-ms 150
  http-after-response set-header content-type application/grpc`, well.port)
		}, 0, codes.Unavailable, "desc = no backend", 2},
		{"HAProxy, a backend resets the stream", func(t *testing.T) *proxy { return haproxy(t, "", resets) }, 0, codes.Unavailable, "REFUSED_STREAM", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := row.start(t)
			conn := dial(t, p.dialable(), grpc.WithDisableRetry())
			var err error
			for range row.drain + 1 {
				err = invoke(t, conn, createOrder, "a")
			}
			if status.Code(err) != row.code || !strings.Contains(fmt.Sprint(err), row.text) {
				t.Errorf("gRPC alone says %v; want %v with %q", err, row.code, row.text)
			}
			r := retrier(t, `
methodConfig:
  - name: [{service: interop.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 2, initialBackoff: 0.001s, maxBackoff: 0.001s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]}
    waitForReady: false
`)
			begin := time.Now()
			err = invoke(t, dial(t, p.dialable(), r.DialOptions()...), getOrder, "b")
			var e *interceptor.Error
			if !errors.As(err, &e) || e.Attempts != row.attempts {
				t.Fatalf("stagger: %+v", err)
			}
			if strings.Contains(row.name, "gRPC's form") && time.Since(begin) < 150*time.Millisecond {
				t.Errorf("the pushback of 150 ms was not obeyed: two attempts within %v", time.Since(begin))
			}
			t.Log(err)
			shown.rows = append(shown.rows, []string{row.name, "`" + firstLine(status.Convert(err).Message()) + "`", status.Code(err).String(), fmt.Sprint(e.Attempts)})
		})
	}
	evidence.add(12, section{title: "What proxies answer", text: answersText, tables: []table{shown}})
}

const answersText = `
The table shows how gRPC reports a proxy's own answers. All are retried if the policy lists UNAVAILABLE and the method is declared idempotent.
stagger obeys a pushback if the proxy answers in gRPC's form.`

const repeatsText = `
gRPC makes 20 calls at once, without any retries, not even those of its transport. Then one of two backends dies while it
handles half of them.`

// firstLine drops a page of HTML.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, `; transport: received unexpected content-type "text/html"`)
}

// TestProxyRepeats shows which settings of a proxy make it retry calls by itself: the client is gRPC without retries.
func TestProxyRepeats(t *testing.T) {
	required(t)
	shown := table{header: []string{"setting", "calls in flight when a backend died", "ran twice", "failed"}}
	for _, row := range []struct {
		name    string
		start   func(t *testing.T, ports ...int) *proxy
		repeats bool
	}{
		{"nginx", func(t *testing.T, ports ...int) *proxy { return nginx(t, "", "", ports...) }, false},
		{"nginx, `grpc_next_upstream off`", func(t *testing.T, ports ...int) *proxy { return nginx(t, "", "grpc_next_upstream off;", ports...) }, false},
		{"nginx, `grpc_next_upstream error non_idempotent`", func(t *testing.T, ports ...int) *proxy {
			return nginx(t, "", "grpc_next_upstream error non_idempotent;", ports...)
		}, false}, // it streams requests, and stores none that it could send again
		{"HAProxy, `retry-on none`", func(t *testing.T, ports ...int) *proxy { return haproxy(t, "retry-on none", ports...) }, false},
		{"HAProxy, `retry-on all-retryable-errors`", func(t *testing.T, ports ...int) *proxy {
			return haproxy(t, "retry-on all-retryable-errors\n  option http-buffer-request", ports...)
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLedger()
			dies, stays := startBackend(t, l, 300*time.Millisecond), startBackend(t, l, 300*time.Millisecond)
			p := row.start(t, dies.port, stays.port)
			// gRPC's own retry of refused streams would be counted as the proxy's.
			conn := dial(t, p.dialable(), grpc.WithDisableRetry(), grpc.WithDefaultCallOptions(grpc.MaxRetryRPCBufferSize(0)))
			results := make(chan error, 20)
			for n := range cap(results) {
				go func() { results <- invoke(t, conn, createOrder, fmt.Sprintf("create %d", n)) }()
			}
			await(t, 5*time.Second, "all calls run", func() bool { return l.total() >= cap(results) })
			dies.Kill()
			failed := 0
			for range cap(results) {
				if err := <-results; err != nil {
					failed++
				}
			}
			if repeated := l.repeated("create"); repeated > 0 != row.repeats {
				t.Errorf("%d calls ran twice", repeated)
			}
			t.Logf("%d ran twice, %d failed", l.repeated("create"), failed)
			shown.rows = append(shown.rows, []string{row.name, fmt.Sprint(cap(results)), fmt.Sprint(l.repeated("create")), fmt.Sprint(failed)})
		})
	}
	evidence.add(13, section{title: "What proxies repeat by themselves", text: repeatsText, tables: []table{shown}})
}

// total returns how often handlers ran.
func (l *ledger) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, runs := range l.runs {
		n += runs
	}
	return n
}

func invoke(t *testing.T, conn *grpc.ClientConn, method, request string, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return conn.Invoke(ctx, method, wrapperspb.String(request), new(wrapperspb.StringValue), opts...)
}

// resetter starts a server that reads each request and then resets its stream. It returns its port.
func resetter(t *testing.T) int {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Protocols: new(http.Protocols), ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := readMessage(r.Body); err == nil {
			panic(http.ErrAbortHandler)
		}
	})}
	srv.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = srv.Serve(lis) }() // it ends when the test closes it
	t.Cleanup(func() { srv.Close() })
	return lis.Addr().(*net.TCPAddr).Port
}

// readMessage reads one message of gRPC's framing.
func readMessage(r io.Reader) (string, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(r, body); err != nil {
		return "", err
	}
	m := new(wrapperspb.StringValue)
	err := proto.Unmarshal(body, m)
	return m.GetValue(), err
}
