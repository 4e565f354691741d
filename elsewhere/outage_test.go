// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A channel with our balancing policy connects again by itself. The age of its outage counts from then, however late the first call
// comes, and is forgotten when the channel is back.
func TestOutage_Quiet(t *testing.T) {
	playCluster(t, 2, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
		c.settle(t)
		down := func(length time.Duration) {
			for _, s := range c.Servers {
				s.Down()
			}
			time.Sleep(length)
		}
		call := func() (time.Duration, error) {
			began := time.Now()
			err := c.call(t.Context(), get)
			return time.Since(began), err
		}
		down(15 * time.Second)
		if took, err := call(); reasonOf(err) != policy.ReasonNotConnected || took > 300*ms {
			t.Errorf("%v after %v; want no wait in an outage of 15 s", err, took)
		}
		for _, s := range c.Servers {
			s.Up()
		}
		time.Sleep(10 * time.Second)
		down(time.Second)
		if took, err := call(); reasonOf(err) != policy.ReasonNotConnected || took != 3*time.Second {
			t.Errorf("%v after %v; want a wait of 3 s in an outage of 1 s", err, took)
		}
	})
}

// The age of an outage is that of the call's connection. Another connection to the same target string, as through another
// network, neither lengthens nor shortens it.
func TestOutage_OtherConnection(t *testing.T) {
	for name, row := range map[string]struct {
		balancing string // the second connection's; the first one has the policy
		play      func(first, second *testserver.Server)
		first     bool // the call is made on the first connection
		waits     bool // because the outage is young
	}{
		"another is down for long": {plainRoundRobin, func(first, second *testserver.Server) {
			first.Down()
			time.Sleep(time.Minute)
			second.Down()
			time.Sleep(time.Second)
		}, false, true},
		"another, with the same policy, is down for long": {aroundRoundRobin, func(first, second *testserver.Server) {
			first.Down()
			time.Sleep(time.Minute)
			second.Down()
			time.Sleep(time.Second)
		}, false, true},
		"another fails later": {aroundRoundRobin, func(first, second *testserver.Server) {
			first.Down()
			time.Sleep(14 * time.Second)
			second.Down()
			time.Sleep(time.Second)
		}, true, false},
		"another comes back": {aroundRoundRobin, func(first, second *testserver.Server) {
			second.Down()
			time.Sleep(time.Second)
			first.Down()
			time.AfterFunc(5*time.Second, second.Up)
			time.Sleep(15 * time.Second)
		}, true, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			playCluster(t, 1, balanced(aroundRoundRobin), func(t *testing.T, c cluster) {
				c.settle(t)
				server := testserver.Start(t)
				r := newRetrier(t, mustParse(t, balanced(row.balancing)), withJournal(new(journal)), interceptor.WithRandom(func() float64 { return 0 }))
				names := manual.NewBuilderWithScheme("lbtest") // that of c.Conn's target
				names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "elsewhere"}}})
				options := append(append(server.DialOptions(), grpc.WithResolvers(names)), r.DialOptions()...)
				other := testkit.Must(grpc.NewClient(c.Conn.Target(), options...))(t)
				t.Cleanup(func() { _ = other.Close() })
				testkit.NoError(t, other.Invoke(t.Context(), get, new(emptypb.Empty), new(emptypb.Empty)))
				row.play(c.Servers[0], server)
				conn := other
				if row.first {
					conn = c.Conn
				}
				began := time.Now()
				err := conn.Invoke(t.Context(), get, new(emptypb.Empty), new(emptypb.Empty))
				took := time.Since(began)
				if reasonOf(err) != policy.ReasonNotConnected || row.waits != (took == 3*time.Second) || !row.waits && took > 300*ms {
					t.Errorf("%v (%s) after %v; waits: %v", err, reasonOf(err), took, row.waits)
				}
			})
		})
	}
}
