// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

const (
	get  = "/acme.orders.v1.OrderService/GetOrder"
	list = "/acme.orders.v1.OrderService/ListOrders"
	ms   = time.Millisecond
)

// scene is a server with a control, and a connection to it.
type scene struct {
	*testserver.Server
	conn    *grpc.ClientConn
	handler http.Handler
}

// stage runs play in virtual time.
func stage(t *testing.T, c *control, play func(t *testing.T, s scene), opts ...testserver.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		testkit.NoError(t, c.start(opts...))
		t.Cleanup(c.server.Close)
		play(t, scene{c.server, c.server.Dial(t), c})
	})
}

// answer is a client's result.
type answer struct {
	err             error
	header, trailer metadata.MD
	elapsed         time.Duration
}

func (s scene) call(ctx context.Context, method string) answer {
	var a answer
	start := time.Now()
	a.err = s.conn.Invoke(ctx, method, wrapperspb.String("request"), &wrapperspb.StringValue{}, grpc.Header(&a.header), grpc.Trailer(&a.trailer))
	a.elapsed = time.Since(start)
	return a
}

// codesOf calls method n times in sequence, and returns the codes.
func (s scene) codesOf(t *testing.T, method string, n int) string {
	t.Helper()
	var names []string
	for range n {
		names = append(names, status.Code(s.call(t.Context(), method).err).String())
	}
	return strings.Join(names, " ")
}

// request sends a request to the control, as change makes it, and returns the code and the answer.
func (s scene) request(t *testing.T, method, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:50052/", strings.NewReader(body))
	r.Header.Set(controlHeader, "1")
	if change != nil {
		change(r)
	}
	s.handler.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// scriptOf returns a script file for one method.
func scriptOf(method, steps string) string {
	return fmt.Sprintf(`{"scripts": [{"method": %q, "steps": [%s]}]}`, method, steps)
}

// script sets the scripts to that of one method.
func (s scene) script(t *testing.T, method, steps string) {
	t.Helper()
	if code, text := s.request(t, http.MethodPost, scriptOf(method, steps), nil); code != http.StatusOK || text != "" {
		t.Fatalf("%d %s", code, text)
	}
}

// attempts lists attempts.
func (s scene) attempts(t *testing.T) attemptList {
	t.Helper()
	_, text := s.request(t, http.MethodGet, "", nil)
	var got attemptList
	testkit.NoError(t, json.Unmarshal([]byte(text), &got))
	return got
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s; want %s", what, got, want)
	}
}

// controlOf returns a control with a script file, or without one for "".
func controlOf(t *testing.T, text string, sets ...*protoregistry.Files) *control {
	t.Helper()
	c := &control{known: allFiles(sets...)}
	if text != "" {
		c.first = testkit.Must(parse("faults.yaml", []byte(text), c.known))(t)
	}
	return c
}

func TestControlScripts(t *testing.T) {
	c := controlOf(t, `
scripts:
  - {method: "*", steps: [{fail: {code: ABORTED}}]}
  - {method: `+get+`, steps: [{fail: {code: "14"}}, {}]}`)
	stage(t, c, func(t *testing.T, s scene) {
		codes := func(want string) {
			t.Helper()
			wantText(t, "codes", s.codesOf(t, get, 2)+" "+s.codesOf(t, list, 1), want)
		}
		codes("Unavailable OK Aborted")
		s.script(t, get, `{"fail": {"code": "UNKNOWN"}}`)
		codes("Unknown Unknown OK")
		if n := s.attempts(t).Count; n != 3 {
			t.Errorf("%d attempts since the script; want 3", n)
		}
		_, text := s.request(t, http.MethodPost, scriptOf(get, `{"fail": {"code": "OK"}}, {"delay": "-1s"}`), nil)
		wantText(t, "error", text, `1:94: scripts[0].steps[0].fail.code: "OK": must be the name or the number of a status code, but not OK: UNAVAILABLE, 14
1:112: scripts[0].steps[1].delay: "-1s": must be at least 0s`)
		codes("Unknown Unknown OK")
		if _, text := s.request(t, http.MethodPost, "", nil); text != "" { // the script file again
			t.Error(text)
		}
		codes("Unavailable OK Aborted")
	})
}

// While scripts are replaced, every call is answered by one of them, as it begins, and the list has the calls since: all answers of
// the newest script, and none of another.
func TestControlScripts_InOneStep(t *testing.T) {
	t.Parallel()
	c := &control{known: allFiles()}
	testkit.NoError(t, c.start())
	t.Cleanup(c.server.Close)
	s := scene{c.server, c.server.Dial(t), c}
	var others strings.Builder // so that it takes a while
	for n := range 100 {
		fmt.Fprintf(&others, `, {"method": "/acme.stock.v1.StockService/Get%d", "steps": [{"ok": {}}]}`, n)
	}
	texts := []string{
		`{"scripts": [{"method": "` + get + `", "steps": [{"fail": {"code": "ABORTED"}}]}` + others.String() + `]}`,
		`{"scripts": [{"method": "*", "steps": [{"fail": {"code": "UNAVAILABLE"}}]}` + others.String() + `]}`,
	}
	if _, text := s.request(t, http.MethodPost, texts[0], nil); text != "" {
		t.Fatal(text)
	}
	var (
		callers sync.WaitGroup
		stop    atomic.Bool
		calls   atomic.Int64
	)
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				calls.Add(1)
				if code := status.Code(s.call(t.Context(), get).err); code != codes.Aborted && code != codes.Unavailable {
					t.Errorf("a call ends with %s, which is in no script", code)
					stop.Store(true)
				}
			}
		})
	}
	for n := 1; !stop.Load() && (n < 50 || calls.Load() < 1000); n++ {
		if _, text := s.request(t, http.MethodPost, texts[n%2], nil); text != "" {
			t.Error(text)
		}
		want := []string{"ABORTED", "UNAVAILABLE"}[n%2]
		is := s.attempts(t)
		for i, a := range is.Attempts {
			if a.Code != "" && a.Code != want || a.Number != i+1 {
				t.Errorf("attempt %d has number %d and ended with %s; want the attempts of the newest script, which is %s", i+1,
					a.Number, a.Code, want)
			}
		}
		if is.Count < len(is.Attempts) {
			t.Errorf("%d attempts in all, and %d are listed", is.Count, len(is.Attempts))
		}
	}
	stop.Store(true)
	callers.Wait()
}

// A page of another site cannot send the header, and a name that points to this machine is no host of ours.
func TestControlRefuses(t *testing.T) {
	stage(t, &control{known: allFiles(), hosts: []string{"faults"}}, func(t *testing.T, s scene) {
		for name, row := range map[string]struct {
			method string
			change func(*http.Request)
			want   int
		}{
			"a test":                      {"POST", nil, 200},
			"without the header":          {"POST", func(r *http.Request) { r.Header.Del(controlHeader) }, 403},
			"another value":               {"POST", func(r *http.Request) { r.Header.Set(controlHeader, "0") }, 403},
			"a list without the header":   {"GET", func(r *http.Request) { r.Header.Del(controlHeader) }, 200},
			"another site's name":         {"POST", func(r *http.Request) { r.Host = "evil.example:50052" }, 403},
			"a list by that name":         {"GET", func(r *http.Request) { r.Host = "evil.example" }, 403},
			"localhost":                   {"POST", func(r *http.Request) { r.Host = "localhost:50052" }, 200},
			"a name that is given":        {"GET", func(r *http.Request) { r.Host = "faults:50052" }, 200},
			"a method that is not for it": {"PUT", nil, 405},
			"a path that is not there":    {"POST", func(r *http.Request) { r.URL.Path = "/scripts" }, 404},
		} {
			if code, text := s.request(t, row.method, "", row.change); code != row.want {
				t.Errorf("%s: %d %s; want %d", name, code, text, row.want)
			}
		}
	})
}

// TestHealth calls gRPC's health service, whose calls do not count as attempts.
func TestHealth(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		h, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING || s.Count("*") != 0 {
			t.Errorf("got %v, %v, %d attempts; want SERVING and none", h, err, s.Count("*"))
		}
	})
}

func TestAttemptsInJSON(t *testing.T) {
	stage(t, controlOf(t, ""), func(t *testing.T, s scene) {
		s.script(t, get, `{"fail": {"code": "CANCELLED"}, "delay": "0.5s"}, {"hang": {}}`)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		md := metadata.Pairs("grpc-previous-rpc-attempts", "2", "trace-bin", "\x00\xff", "shard", "7", "shard", "8")
		start := time.Now()
		s.call(metadata.NewOutgoingContext(ctx, md), get)
		a := s.attempts(t).Attempts[0]

		wantText(t, "attempt", fmt.Sprint(a.Method, a.Number, a.Connection, a.PreviousAttempts, a.MessagesReceived,
			a.HalfClosed, a.MessagesSent, a.Code, a.Cancelled, a.TimeoutSeconds),
			fmt.Sprint(get, 1, 1, 2, 1, false, 0, "CANCELLED", false, 2.0))
		if !a.StartTime.Equal(start) || a.EndTime.Sub(start) != 500*ms {
			t.Errorf("from %v to %v; want half a second from %v", a.StartTime, a.EndTime, start)
		}
		wantText(t, "request", string(a.Requests[0]), "\x0a\x07request")
		wantText(t, "metadata", fmt.Sprint(a.Metadata["shard"], a.Metadata["trace-bin"]), "[7 8] [AP8=]")

		running, giveUp := context.WithCancel(t.Context())
		go s.call(running, get)
		synctest.Wait()
		if a := s.attempts(t).Attempts[1]; a.EndTime != nil || a.Code != "" || a.TimeoutSeconds != 0 {
			t.Errorf("got %+v; want no end and no timeout", a)
		}
		giveUp()
		synctest.Wait()
		if a := s.attempts(t).Attempts[1]; a.EndTime == nil || a.Code != "CANCELLED" || !a.Cancelled {
			t.Errorf("got %+v; want it given up", a)
		}
	})
}
