// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
)

// live is a web server in memory that works in a bubble, with a client.
type live struct {
	client *http.Client
	lis    *bufconn.Listener
	page   *page
}

// serveLive serves the page of Retriers, on connections that hold some bytes in each direction.
func serveLive(t *testing.T, room int, retriers ...*interceptor.Retrier) live {
	t.Helper()
	l := live{lis: bufconn.Listen(room), page: newPage(Config{}, retriers)}
	guarded := Config{}.guard(l.page)
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "127.0.0.1:1" // bufconn has no addresses
		guarded.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tcp("127.0.0.1:80"))))
	})}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l.lis) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.lis.DialContext(ctx) }}
	l.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		web.Close()
		<-served
		l.page.history.stopped.Store(true)
	})
	return l
}

// listen connects a listener; leave lets it go.
func (l live) listen(t *testing.T, query string) (events *bufio.Reader, code int, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request := testkit.Must(http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/debug/stagger/events"+query, nil))(t)
	response := testkit.Must(l.client.Do(request))(t)
	return bufio.NewReader(response.Body), response.StatusCode, func() { cancel(); response.Body.Close() }
}

// next returns the next event, except comments.
func next(t *testing.T, events *bufio.Reader) section {
	t.Helper()
	for {
		line := testkit.Must(events.ReadString('\n'))(t)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var s section
			testkit.NoError(t, json.Unmarshal([]byte(data), &s))
			return s
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		l := serveLive(t, 1<<20, s.retrier)
		events, code, leave := l.listen(t, "?method="+create)
		defer leave()
		if code != http.StatusOK {
			t.Fatal(code)
		}
		for _, id := range []string{"policy-1", "running-1", "backends-1", "budgets-1", "admission-1", "decisions-1"} {
			if got := next(t, events); got.ID != id {
				t.Errorf("%s; want %s", got.ID, id)
			}
		}
		s.On("*", down())
		_ = s.call(t, create)
		_ = s.call(t, getOrder)
		began := time.Now()
		backends, budgets, decisions := next(t, events), next(t, events), next(t, events)
		if took := time.Since(began); took > refresh {
			t.Errorf("after %v", took)
		}
		wants(t, string(backends.HTML), "<td>bufconn</td>")
		wants(t, string(budgets.HTML), "<th>orders<", "0 of 3")
		wants(t, string(decisions.HTML), "not_idempotent</span>")
		if decisions.ID != "decisions-1" || strings.Contains(string(decisions.HTML), "budget_exhausted") {
			t.Errorf("%+v", decisions)
		}
	})
}

func TestEventsHaveAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := serveLive(t, 1<<20, newRetrier(t))
		events, _, leave := l.listen(t, "")
		defer leave()
		began := time.Now()
		if _, err := io.Copy(io.Discard, events); err != nil || time.Since(began) != session {
			t.Errorf("%v after %v; want the end after %v", err, time.Since(began), session)
		}
		if n := len(l.page.listeners); n != 0 {
			t.Errorf("%d listeners are left", n)
		}
	})
}

func TestEventsOfTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := serveLive(t, 1<<20, newRetrier(t))
		var leaves []func()
		for range maxListeners {
			_, code, leave := l.listen(t, "")
			if code != http.StatusOK {
				t.Fatal(code)
			}
			leaves = append(leaves, leave)
		}
		text, code, leave := l.listen(t, "")
		leave()
		if said, _ := io.ReadAll(text); code != http.StatusServiceUnavailable {
			t.Errorf("listener %d: %d %s", maxListeners+1, code, said)
		}
		leaves[0]()
		synctest.Wait()
		_, code, leave = l.listen(t, "")
		if code != http.StatusOK {
			t.Errorf("after one has left: %d", code)
		}
		leave()
		for _, leave := range leaves[1:] {
			leave()
		}
		synctest.Wait()
		if n := len(l.page.listeners); n != 0 {
			t.Errorf("%d listeners are left", n)
		}
	})
}

// A listener that does not read is disconnected, and others don't wait for it.
func TestEventsToASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		l := serveLive(t, 2048, s.retrier) // less than one section
		slow := testkit.Must(l.lis.DialContext(t.Context()))(t)
		defer slow.Close()
		testkit.Must(io.WriteString(slow, "GET /debug/stagger/events HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
		s.On("*", down())
		_ = s.call(t, getOrder)
		synctest.Wait()
		if n := len(l.page.listeners); n != 1 {
			t.Fatalf("%d listeners", n)
		}
		events, _, leave := l.listen(t, "")
		defer leave()
		if got := next(t, events); got.ID != "policy-1" {
			t.Error(got)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, events)
		}()
		time.Sleep(patience + 2*refresh)
		synctest.Wait()
		if n := len(l.page.listeners); n != 1 {
			t.Errorf("%d listeners; want the one that reads", n)
		}
		leave()
		<-read
	})
}

// A connection that cannot be cut gets no events.
func TestEventsWithoutDeadlines(t *testing.T) {
	t.Parallel()
	w := get(Config{}.Handler(newRetrier(t)), "events")
	if w.Code != http.StatusNotImplemented {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
