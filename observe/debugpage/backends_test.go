// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// at is the address of a backend.
func at(n int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: n} }

func TestBackends(t *testing.T) {
	t.Parallel()
	var table backendTable
	start := time.Unix(1_000_000, 0)
	note := func(after time.Duration, port int, code codes.Code, slow bool) {
		table.note(interceptor.Event{Target: "orders", Peer: at(port), Code: code, SlowAttempt: slow}, start.Add(after))
	}
	shown := func(after time.Duration) (text string) {
		list, _ := table.states(start.Add(after))
		for _, b := range list {
			text += fmt.Sprintf("%s: %d, %d failed, %d slow, seen at %d s; ", b.Address, b.Attempts, b.Failed, b.Slow, b.Seen.Unix()-start.Unix())
		}
		return text
	}
	table.note(interceptor.Event{Target: "orders", Code: codes.Unavailable}, start) // it has reached no backend
	note(0, 1, codes.OK, false)
	note(time.Second, 1, codes.NotFound, false)
	note(2*time.Second, 2, codes.Unavailable, false)
	note(3*time.Second, 3, codes.Canceled, true) // it lost
	note(5*time.Minute, 3, codes.DeadlineExceeded, true)
	for _, row := range []struct {
		after time.Duration
		want  string
	}{
		{5 * time.Minute, "10.0.0.1:3: 2, 1 failed, 2 slow, seen at 300 s; 10.0.0.1:2: 1, 1 failed, 0 slow, seen at 2 s; 10.0.0.1:1: 2, 0 failed, 0 slow, seen at 1 s; "},
		{9*time.Minute + 59*time.Second, "10.0.0.1:3: 2, 1 failed, 2 slow, seen at 300 s; 10.0.0.1:2: 1, 1 failed, 0 slow, seen at 2 s; 10.0.0.1:1: 2, 0 failed, 0 slow, seen at 1 s; "},
		{10*time.Minute + 3*time.Second, "10.0.0.1:3: 1, 1 failed, 1 slow, seen at 300 s; "},
		{15*time.Minute + time.Second, ""},
	} {
		if got := shown(row.after); got != row.want {
			t.Errorf("after %v: %s\nwant %s", row.after, got, row.want)
		}
	}
}

// Of many backends the table shows 64, and counts a thousand. Those that are gone leave their places.
func TestBackends_Bounded(t *testing.T) {
	t.Parallel()
	var table backendTable
	now := time.Unix(1_000_000, 0)
	for port := range 3000 {
		table.note(interceptor.Event{Target: "orders", Peer: at(port), SlowAttempt: port == 777}, now)
	}
	list, others := table.states(now)
	if len(list) != 64 || others != 1000-64 || list[0].Address != "10.0.0.1:777" || len(table.records) != 1000 {
		t.Errorf("%d shown, %d not, first %+v, %d counted", len(list), others, list[0], len(table.records))
	}
	now = now.Add(11 * time.Minute)
	table.note(interceptor.Event{Target: "orders", Peer: at(4000)}, now)
	if list, _ := table.states(now); len(list) != 1 || list[0].Address != "10.0.0.1:4000" {
		t.Errorf("%+v", list)
	}
}

const hanging = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy:
    {maxAttempts: 2, initialBackoff: 0.02s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, perAttemptTimeout: 0.1s, budget: NONE}
`

// While a call hangs, the page shows that it runs, and since when. A decision on a slow attempt has its backend when that has ended, and
// the time of the next attempt counts from the start of the slow one.
func TestPageInAHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSceneOfHangs(t)
		h := Config{}.Handler(s.retrier)
		s.On("*", testserver.OK())
		for range 20 {
			testkit.NoError(t, s.call(t, getOrder))
		}
		s.On("*", testserver.Hang().Times(1), testserver.OK().Delay(90*time.Millisecond))
		done := make(chan struct{}, 2)
		go func() {
			_ = s.call(t, getOrder)
			done <- struct{}{}
		}()
		time.Sleep(50 * time.Millisecond)
		body := get(h, "").Body.String()
		wants(t, body, "None yet", "Calls that run are above", "<td>"+getOrder+"</td><td>"+s.conn.CanonicalTarget()+`</td><td class="figure">1</td><td class="figure">100ms</td>`)
		var during []retrierState
		testkit.NoError(t, json.Unmarshal(get(h, "state.json").Body.Bytes(), &during))
		if r := during[0].Running; len(r) != 1 || r[0].Calls != 1 || time.Since(r[0].Since) != 50*time.Millisecond {
			t.Errorf("%+v", r)
		}
		time.Sleep(100 * time.Millisecond) // the second attempt runs
		wants(t, get(h, "").Body.String(), "hedge</span> after 120ms")
		<-done
		var after []retrierState
		testkit.NoError(t, json.Unmarshal(get(h, "state.json").Body.Bytes(), &after))
		is := after[0]
		if d := is.Decisions; len(d) != 1 || !d[0].TimedOut || d[0].Peer != "bufconn" || d[0].Delay != 0.02 || d[0].Elapsed != 0.1 {
			t.Errorf("%+v", d)
		}
		if b := is.Backends; len(b) != 1 || b[0].Attempts != 22 || b[0].Slow != 1 || b[0].Failed != 0 || len(is.Running) != 0 {
			t.Errorf("%+v, %+v", b, is.Running)
		}
	})
}
