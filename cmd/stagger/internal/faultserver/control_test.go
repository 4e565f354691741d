// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/tools/must"
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
		c.changed = make(chan struct{}) // of this bubble
		srv := must.Get(c.start(opts...))(t)
		t.Cleanup(srv.Close)
		play(t, scene{srv, srv.Dial(t), c.handler()})
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

// request sends a request such as "POST /reset", and returns "" or the error.
func (s scene) request(t *testing.T, route, body string) string {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	if (w.Code == http.StatusOK) != (w.Body.Len() == 0) {
		t.Errorf("%s: %d with %q", route, w.Code, w.Body)
	}
	return strings.TrimSpace(w.Body.String())
}

// scriptOf returns a script file for one method.
func scriptOf(method, steps string) string {
	return fmt.Sprintf(`{"scripts": [{"method": %q, "steps": [%s]}]}`, method, steps)
}

// script sets a method's script.
func (s scene) script(t *testing.T, method, steps string) {
	t.Helper()
	wantText(t, "error", s.request(t, "PUT /scripts", scriptOf(method, steps)), "")
}

// attempts lists attempts.
func (s scene) attempts(t *testing.T, query string) attemptList {
	t.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/attempts?"+query, nil))
	var got attemptList
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return got
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s; want %s", what, got, want)
	}
}

// controlOf returns a control with a script file.
func controlOf(t *testing.T, text string) *control {
	t.Helper()
	c := newControl(newRegistry())
	must.Do(t, c.load("faults.yaml", []byte(text)))
	return c
}

func TestControlScripts(t *testing.T) {
	c := controlOf(t, `
scripts:
  - {method: "*", steps: [{fail: {code: ABORTED}}]}
  - {method: `+get+`, steps: [{fail: {code: "14"}, queue: {name: db, workers: 1, serviceTime: 1s}}, {}]}`)
	stage(t, c, func(t *testing.T, s scene) {
		codes := func(want string) {
			t.Helper()
			wantText(t, "codes", s.codesOf(t, get, 2)+" "+s.codesOf(t, list, 1), want)
		}
		codes("Unavailable OK Aborted")
		s.script(t, get, `{"fail": {"code": "UNKNOWN"}, "queue": {"name": "other", "workers": 1, "serviceTime": "1s"}}`)
		s.script(t, list, `{"fail": {"code": "ABORTED"}}, {"fail": {"code": "INTERNAL"}}`)
		codes("Unknown Unknown Aborted")
		wantText(t, "error", s.request(t, "POST /scripts", "scripts: [{method: "+get+", steps: [{ok: {}}, {fail: {code: NOT_FOUND}}]}]"), "")
		codes("OK NotFound Internal")
		wantText(t, "error", s.request(t, "DELETE /scripts?method="+list, ""), "")
		codes("NotFound NotFound Aborted")

		s.script(t, list, `{"fail": {"code": "ABORTED"}}, {"fail": {"code": "INTERNAL"}}`)
		codes("NotFound NotFound Aborted")
		wantText(t, "error", s.request(t, "DELETE /attempts", ""), "")
		if n := s.Count("*"); n != 0 {
			t.Errorf("%d attempts; want none", n)
		}
		codes("Unknown OK Aborted")
		wantText(t, "error", s.request(t, "POST /reset", ""), "")
		codes("Unavailable OK Aborted")
		s.script(t, list, `{"queue": {"name": "other", "workers": 2, "serviceTime": "1s"}}`) // the name is free again
	})
}

func TestControlErrorsChangeNothing(t *testing.T) {
	stage(t, newControl(newRegistry()), func(t *testing.T, s scene) {
		s.script(t, get, `{"fail": {"code": "ABORTED"}}`)
		many := strings.Repeat(`{}, `, 5999) + "{}"
		wantText(t, "error", s.request(t, "POST /scripts", scriptOf(list, many)), "")
		other := strings.ReplaceAll(strings.ReplaceAll(get, "acme", "acme.other"), "/", "%2F")
		for _, row := range []struct{ route, body, want string }{
			{
				"PUT /scripts", scriptOf(get, `{"fail": {"code": "OK"}, "queue": {"name": "db", "workers": 1, "serviceTime": "1s"}}, {"delay": "-1s"}`),
				`1:94: scripts[0].steps[0].fail.code: "OK": must be the name or the number of a status code, but not OK: UNAVAILABLE, 14
1:172: scripts[0].steps[1].delay: "-1s": must be 0 or more`,
			},
			{"PUT /scripts", "", "1:1: is empty; a script file has keys such as scripts"},
			{"PUT /scripts", scriptOf(get, ""), "1:75: scripts[0].steps: must have at least one step, such as {ok: {}}"},
			{"PUT /scripts", scriptOf(get, many+","+many), "1:75: scripts[0].steps: 12000: must be at most 10000 steps, including the existing 0"},
			{"POST /scripts", scriptOf(list, many), "1:77: scripts[0].steps: 6000: must be at most 10000 steps, including the existing 6000"},
			{"DELETE /scripts?method=" + other, "", `method: "/acme.other.orders.v1.OrderService/GetOrder": has no script: must be a method as given in a script`},
			{"GET /attempts?method=GetOrder", "", `method: "GetOrder": must be "/package.Service/Method", "/package.Service/*" or "*"`},
			{"GET /attempts?after=x", "", `after: "x": must be an attempt's serial`},
			{"GET /attempts?requests=7", "", `requests: "7": must be true or false`},
			{"GET /attempts?wait=5", "", `wait: "5": must be a duration: 5s`},
			{"GET /attempts?events=all", "", `events: "all": must be the number of events of an earlier list`},
			{"GET /attempts?limit=7", "", `limit: "7": unknown; must be method, after, requests, wait or events`},
		} {
			wantText(t, row.route, s.request(t, row.route, row.body), row.want)
		}
		wantText(t, "codes", s.codesOf(t, get, 2)+" "+s.codesOf(t, list, 1), "Aborted Aborted OK")
		s.script(t, get, `{"queue": {"name": "db", "workers": 2, "serviceTime": "2s"}}`) // the queue's name is free
	})
}

func TestControlIsNotForOtherPages(t *testing.T) {
	stage(t, newControl(newRegistry()), func(t *testing.T, s scene) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/reset", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w := httptest.NewRecorder()
		if s.handler.ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Errorf("a page of another site got %d; want 403", w.Code)
		}
	})
}

// TestOwnServices calls gRPC's own services, whose calls do not count as attempts.
func TestOwnServices(t *testing.T) {
	stage(t, newControl(orders(t)), func(t *testing.T, s scene) {
		h, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("got %v, %v; want SERVING", h, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream := must.Get(reflectionv1.NewServerReflectionClient(s.conn).ServerReflectionInfo(ctx))(t)
		ask := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
		must.Do(t, stream.Send(ask))
		reply := must.Get(stream.Recv())(t)
		var shown []string
		for _, one := range reply.GetListServicesResponse().GetService() {
			shown = append(shown, one.GetName())
		}
		for _, want := range []string{"acme.orders.v1.OrderService", "grpc.health.v1.Health"} {
			if !slices.Contains(shown, want) {
				t.Errorf("reflection shows %v; want %s among them", shown, want)
			}
		}
		if n := s.Count("*"); n != 0 {
			t.Errorf("%d attempts; want none", n)
		}
	})
}

func TestAttemptsInJSON(t *testing.T) {
	stage(t, newControl(newRegistry()), func(t *testing.T, s scene) {
		s.script(t, get, `{"fail": {"code": "CANCELLED"}, "delay": "0.5s"}, {"hang": {}}`)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		md := metadata.Pairs("grpc-previous-rpc-attempts", "2", "trace-bin", "\x00\xff", "shard", "7", "shard", "8")
		start := time.Now()
		s.call(metadata.NewOutgoingContext(ctx, md), get)
		a := s.attempts(t, "requests=true").Attempts[0]

		size := proto.Size(wrapperspb.String("request"))
		wantText(t, "attempt", fmt.Sprint(a.Serial, a.Method, a.Number, a.Connection, a.PreviousAttempts, a.MessagesReceived,
			a.BytesReceived, a.HalfClosed, a.MessagesSent, a.Code, a.Cancelled, a.TimeoutSeconds),
			fmt.Sprint(1, get, 1, 1, 2, 1, size, false, 0, "CANCELLED", false, 2.0))
		if !a.StartTime.Equal(start) || a.EndTime.Sub(start) != 500*ms {
			t.Errorf("from %v to %v; want half a second from %v", a.StartTime, a.EndTime, start)
		}
		var sent wrapperspb.StringValue
		if err := proto.Unmarshal(a.Requests[0], &sent); err != nil || sent.GetValue() != "request" {
			t.Errorf("request %v, %v", &sent, err)
		}
		wantText(t, "metadata", fmt.Sprint(a.Metadata["shard"], a.Metadata["trace-bin"]), "[7 8] [AP8=]")

		running, giveUp := context.WithCancel(t.Context())
		go s.call(running, get)
		synctest.Wait()
		if a := s.attempts(t, "after=1").Attempts[0]; a.EndTime != nil || a.Code != "" || a.TimeoutSeconds != 0 || a.Requests != nil {
			t.Errorf("got %+v; want no end, no timeout and no requests", a)
		}
		giveUp()
		synctest.Wait()
		if a := s.attempts(t, "after=1").Attempts[0]; a.EndTime == nil || a.Code != "CANCELLED" || !a.Cancelled {
			t.Errorf("got %+v; want it given up", a)
		}
	})
}

func TestAttemptsFiltered(t *testing.T) {
	stage(t, newControl(newRegistry()), func(t *testing.T, s scene) {
		for range 3 {
			s.call(t.Context(), get)
			s.call(t.Context(), list)
		}
		for query, want := range map[string]string{
			"":                                "[3 4 5 6] of 6",
			"method=*&after=4":                "[5 6] of 6",
			"method=" + url.QueryEscape(list): "[4 6] of 3",
			"method=/acme.orders.v1.OrderService/*&after=5": "[6] of 6",
			"method=/acme.other.v1.Service/*":               "[] of 0",
		} {
			got := s.attempts(t, query)
			serials := []int{}
			for _, a := range got.Attempts {
				serials = append(serials, a.Serial)
			}
			wantText(t, query, fmt.Sprint(serials, " of ", got.Count), want)
		}
	}, testserver.Keep(4))
}

func TestAttemptsAwaited(t *testing.T) {
	stage(t, newControl(newRegistry()), func(t *testing.T, s scene) {
		s.script(t, get, `{"delay": "3s"}`)
		time.AfterFunc(time.Second, func() { s.call(t.Context(), get) })
		start := time.Now()
		for _, row := range []struct {
			query string
			want  string // attempts, events, and the time since the start
		}{
			{"", "0 0 0s"},
			{"wait=500ms", "0 0 500ms"},
			{"wait=1h", "1 1 1s"},
			{"wait=1h", "1 1 1s"}, // the default is no events
			{"wait=1h&events=1&method=" + list, "0 2 4s"},
			{"wait=1h&events=7", "1 2 4s"},
		} {
			got := s.attempts(t, row.query)
			wantText(t, row.query, fmt.Sprint(len(got.Attempts), got.Events, time.Since(start)), row.want)
		}
		time.AfterFunc(time.Second, func() { s.request(t, "DELETE /attempts", "") })
		if got := s.attempts(t, "wait=1h&events=2"); got.Events != 0 || got.Count != 0 || time.Since(start) != 5*time.Second {
			t.Errorf("got %+v after %v; want a list without attempts at the reset", got, time.Since(start))
		}
	})
}
