// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	etcdserverpb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/tools/proctest"
)

// node is a member of an etcd cluster.
type node struct {
	*proctest.Process

	port int // for clients
	args []string
}

// cluster starts this many nodes, with their data in folders of the test.
func cluster(t *testing.T, size int) []*node {
	t.Helper()
	nodes := make([]*node, size)
	var members []string
	for i := range nodes {
		peers := proctest.Port(t)
		nodes[i] = &node{port: proctest.Port(t)}
		members = append(members, fmt.Sprintf("n%d=http://%s", i, address(peers)))
		nodes[i].args = []string{
			"--name", fmt.Sprintf("n%d", i), "--data-dir", t.TempDir(), "--log-level", "error", "--logger", "zap",
			"--listen-client-urls", "http://" + address(nodes[i].port), "--advertise-client-urls", "http://" + address(nodes[i].port),
			"--listen-peer-urls", "http://" + address(peers), "--initial-advertise-peer-urls", "http://" + address(peers),
			"--heartbeat-interval", "50", "--election-timeout", "500",
		}
	}
	for _, n := range nodes {
		n.args = append(n.args, "--initial-cluster", strings.Join(members, ","))
		n.run(t)
	}
	for _, n := range nodes {
		n.healthy(t)
	}
	return nodes
}

// run starts the node, or restarts it with its data.
func (n *node) run(t *testing.T) {
	t.Helper()
	n.Process = proctest.Start(t, nil, []string{"ETCD_UNSUPPORTED_ARCH=" + unsupported()}, "etcd", n.args...)
}

// unsupported is a setting that etcd requires on less tested machines.
func unsupported() string {
	if runtime.GOARCH == "amd64" {
		return ""
	}
	return runtime.GOARCH
}

// healthy waits until the node answers a read that needs the cluster's consent.
func (n *node) healthy(t *testing.T) {
	t.Helper()
	conn := dial(t, address(n.port), connectEach(20*time.Millisecond))
	defer conn.Close()
	await(t, 20*time.Second, "etcd answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("k")}, grpc.WaitForReady(true))
		return err == nil
	})
}

// leader returns the node that leads the cluster.
func leader(t *testing.T, nodes []*node) *node {
	t.Helper()
	var found *node
	await(t, 10*time.Second, "etcd has a leader", func() bool {
		for _, n := range nodes {
			conn := dial(t, address(n.port))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			st, err := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
			cancel()
			conn.Close()
			if err == nil && st.GetLeader() == st.GetHeader().GetMemberId() {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// versions reads how often each key was put.
func versions(t *testing.T, nodes []*node) map[string]int64 {
	t.Helper()
	conn := dial(t, address(nodes[0].port))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	all, err := etcdserverpb.NewKVClient(conn).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}},
		grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err != nil {
		t.Fatal(err)
	}
	v := map[string]int64{}
	for _, kv := range all.GetKvs() {
		v[string(kv.GetKey())] = kv.GetVersion()
	}
	return v
}

const (
	put  = "Put"
	read = "Range"
)

// keys are etcd's methods: each Put has its own key, whose version shows how often it was applied.
func keys(conn *grpc.ClientConn) []callee {
	kv := etcdserverpb.NewKVClient(conn)
	return []callee{
		{put, func(ctx context.Context, request string) error {
			_, err := kv.Put(ctx, &etcdserverpb.PutRequest{Key: []byte(request), Value: []byte("v")})
			return err
		}},
		{read, func(ctx context.Context, _ string) error {
			_, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte("k")})
			return err
		}},
	}
}

// dialNodes returns a connection to each node.
func dialNodes(t *testing.T, nodes []*node, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	ports := make([]int, len(nodes))
	for i, n := range nodes {
		ports[i] = n.port
	}
	return dialAll(t, ports, opts...)
}

// etcdClients are the clients to compare. The controls retry every method.
func etcdClients() []client {
	const retry = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]`
	with := func(name, text string) client {
		return client{name: name, options: func(t *testing.T) []grpc.DialOption {
			return append(retrier(t, text).DialOptions(), grpc.WithDefaultServiceConfig("{"+roundRobin+"}"))
		}}
	}
	safe := func(extra string) string {
		return `
methodConfig:
  - {name: [{service: etcdserverpb.KV, method: Range}], ` + retry + extra + `}}
  - {name: [{service: etcdserverpb.KV}], ` + retry + extra + `}}
`
	}
	all := []client{
		bare(),
		grpcRetries(),
		with(ourName, safe("")),
		with(ourName+", attempts of 200 ms", safe(", perAttemptTimeout: 0.2s")),
		with(ourName+", attempts of 200 ms, everything assumed idempotent", "idempotency: ASSUME"+safe(", perAttemptTimeout: 0.2s, budget: NONE")),
	}
	all[len(all)-1].unsafe = true
	return all
}

// outage is a fault of etcd while calls go on.
type outage struct {
	name   string
	nodes  int
	reads  float64 // share of reads that must succeed with stagger
	happen func(t *testing.T, nodes []*node) (away time.Duration)
}

var outages = []outage{
	{"one node, killed once, and started again at once", 1, 0.99, func(t *testing.T, nodes []*node) time.Duration {
		pass(t, 4*time.Second)
		begin := time.Now()
		nodes[0].Kill()
		nodes[0].run(t)
		nodes[0].healthy(t)
		away := time.Since(begin)
		pass(t, 2*time.Second)
		return away
	}},
	{"one node, stopped for 600 ms three times", 1, 0, func(t *testing.T, nodes []*node) time.Duration {
		for range 3 {
			pass(t, 500*time.Millisecond)
			nodes[0].Signal(t, syscall.SIGSTOP)
			pass(t, 600*time.Millisecond)
			nodes[0].Signal(t, syscall.SIGCONT)
		}
		pass(t, 500*time.Millisecond)
		return 0
	}},
	{"three nodes, the leader killed three times", 3, 0, func(t *testing.T, nodes []*node) time.Duration {
		for range 3 {
			pass(t, 500*time.Millisecond)
			n := leader(t, nodes)
			n.Kill()
			pass(t, time.Second)
			n.run(t)
			n.healthy(t)
		}
		pass(t, 500*time.Millisecond)
		return 0
	}},
}

const etcdText = `
Each client makes 60 calls a second to a real etcd, half of them Puts. Each Put has its own key, so the version of the key says
how often it was applied. Reads are declared idempotent, Puts are not. In each cell: reads, % good · Puts, % good · Puts that were
applied twice. No client lost a Put that was acknowledged.`

// TestEtcd accounts for every Put like Jepsen: acknowledged data exists, and no non-idempotent Put was applied twice.
// Clients that retry everything show that the count can detect that.
func TestEtcd(t *testing.T) {
	required(t)
	evidence.uses("etcd", version(t, "etcd", "--version"))
	clients := etcdClients()
	shown := table{header: []string{"outage"}}
	for _, c := range clients {
		shown.header = append(shown.header, c.name)
	}
	twice := map[bool]int{}             // by whether the client may retry
	leaderless := map[string]outcomes{} // Puts while leaders were killed, by client
	puts := 0
	for _, o := range outages {
		nodes, away := cluster(t, o.nodes), time.Duration(0)
		all := underLoad(t, clients, 60, func(c client) []callee { return keys(dialNodes(t, nodes, c.options(t)...)) }, func() { away = o.happen(t, nodes) })
		applied := versions(t, nodes)
		row := []string{o.name}
		if away > 0 {
			row[0] += fmt.Sprintf(": away for %d ms", away.Milliseconds())
		}
		for i, c := range clients {
			reads, writes, again := all[i].of(read), all[i].of(put), 0
			for _, call := range writes {
				switch n := applied[call.request]; {
				case n > 1:
					again++
				case n == 0 && call.err == nil:
					t.Errorf("%s: %s: %s was acknowledged and is lost", o.name, c.name, call.request)
				}
			}
			row = append(row, fmt.Sprintf("%s · %s · %d", percent(reads.good(), len(reads)), percent(writes.good(), len(writes)), again))
			if twice[c.unsafe] += again; !c.unsafe {
				puts += len(writes)
			}
			if o.nodes > 1 {
				leaderless[c.name] = writes
			}
			// A disconnected client reconnects after 1 s, and waits for 3 s at most.
			if c.name == ourName && away < time.Second && float64(reads.good()) < o.reads*float64(len(reads)) {
				t.Errorf("%s: %d of %d reads were good", o.name, reads.good(), len(reads))
			}
		}
		shown.rows = append(shown.rows, row)
		for _, n := range nodes {
			n.Kill()
		}
	}
	if twice[false] > 0 || twice[true] == 0 {
		t.Errorf("Puts that were applied twice: %d by clients that must not repeat them, %d by those that do", twice[false], twice[true])
	}
	plain, assumed := leaderless[ourName], leaderless[clients[len(clients)-1].name]
	evidence.worse("While leaders of etcd are killed, %s %% of the Puts succeed, and %s %% if all methods are assumed idempotent: stagger doesn't "+
		"retry Puts that may have been applied.", percent(plain.good(), len(plain)), percent(assumed.good(), len(assumed)))
	text := fmt.Sprintf("%s\nOf %d Puts by clients that must not retry them, %d were applied twice. Others applied %d Puts twice.",
		strings.TrimSpace(etcdText), puts, twice[false], twice[true])
	evidence.add(20, section{title: "etcd", text: text, tables: []table{shown}})
}
