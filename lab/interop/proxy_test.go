// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/tools/proctest"
)

// proxy is nginx or HAProxy in front of backends.
type proxy struct {
	*proctest.Process

	port    int
	command []string
	reloads syscall.Signal // makes it read
}

// run starts the proxy, or restarts it.
func (p *proxy) run(t *testing.T) {
	t.Helper()
	p.Process = proctest.Start(t, nil, nil, p.command[0], p.command[1:]...)
	listening(t, p.port)
}

// dialable returns the address for clients.
func (p *proxy) dialable() string { return address(p.port) }

// nginx starts nginx before backends. extra goes into its only location, and top next to its servers.
func nginx(t *testing.T, top, extra string, ports ...int) *proxy {
	t.Helper()
	p := &proxy{port: proctest.Port(t), reloads: syscall.SIGHUP}
	var servers strings.Builder
	for _, backend := range ports {
		fmt.Fprintf(&servers, "    server %s max_fails=0;\n", address(backend))
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	dir := t.TempDir()
	config := file(t, "nginx.conf", fmt.Sprintf(`daemon off;
%s
pid %[2]s/nginx.pid;
error_log stderr error;
worker_processes 1;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  upstream backends {
%[3]s    keepalive 16;
  }
  %[4]s
  server {
    listen %[5]s http2;
    location / {
      grpc_pass grpc://backends;
      grpc_connect_timeout 1s;
      %[6]s
    }
    location = /unavailable {
      internal;
      default_type application/grpc;
      add_header grpc-status 14 always;
      add_header grpc-message "no backend" always;
      add_header grpc-retry-pushback-ms 150 always;
      return 200;
    }
  }
}
`, user, dir, servers.String(), top, address(p.port), extra))
	p.command = []string{"nginx", "-c", config, "-p", dir, "-e", "stderr"}
	p.run(t)
	return p
}

// haproxy starts HAProxy before backends. extra goes into the backend's section.
func haproxy(t *testing.T, extra string, ports ...int) *proxy {
	t.Helper()
	p := &proxy{port: proctest.Port(t), reloads: syscall.SIGUSR2}
	var servers strings.Builder
	for i, backend := range ports {
		fmt.Fprintf(&servers, "  server s%d %s proto h2\n", i, address(backend))
	}
	config := file(t, "haproxy.cfg", fmt.Sprintf(`global
  nbthread 1
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 2s
frontend in
  bind %s proto h2
  default_backend out
backend out
  balance roundrobin
  option redispatch 1
  %s
%s`, address(p.port), extra, servers.String()))
	p.command = []string{"haproxy", "-W", "-db", "-f", config}
	p.run(t)
	return p
}

// incident is a fault of a proxy and its backends while calls go on.
type incident struct {
	name   string
	maxAge time.Duration // of connections at the backends
	nginx  string        // settings that the incident needs; "" for an incident of any proxy
	happen func(t *testing.T, p *proxy, b []*backend)
}

var incidents = []incident{
	{"backends are killed in turn", 0, "", func(t *testing.T, _ *proxy, b []*backend) {
		for n := range 6 {
			b[n%2].Kill()
			pass(t, 100*time.Millisecond)
			b[n%2].start(t)
			pass(t, 200*time.Millisecond)
		}
	}},
	{"a backend stops in order, and starts again", 0, "", func(t *testing.T, _ *proxy, b []*backend) {
		b[0].drain()
		pass(t, 300*time.Millisecond)
		b[0].start(t)
		pass(t, 300*time.Millisecond)
	}},
	{"backends send GOAWAY every 200 ms", 200 * time.Millisecond, "", func(t *testing.T, _ *proxy, _ []*backend) {
		pass(t, time.Second)
	}},
	{"the proxy reloads", 0, "", func(t *testing.T, p *proxy, _ []*backend) {
		for range 3 {
			p.Signal(t, p.reloads)
			pass(t, 300*time.Millisecond)
		}
	}},
	{"the proxy is killed, and starts again at once", 0, "", func(t *testing.T, p *proxy, _ []*backend) {
		p.Kill()
		p.run(t)
		pass(t, 500*time.Millisecond)
	}},
	{"the proxy sends GOAWAY after every 20 calls", 0, "keepalive_requests 20;", func(t *testing.T, _ *proxy, _ []*backend) {
		pass(t, time.Second)
	}},
}

// TestProxies makes every client call through a proxy in every incident, and counts handlers that ran twice for one
// non-idempotent call. gRPC's retries, which retry every method, show that the count can detect that.
func TestProxies(t *testing.T) {
	required(t)
	const denyName = ourName + ", `transparentRetry: DENY`"
	evidence.uses("nginx", version(t, "nginx", "-v"))
	evidence.uses("HAProxy", version(t, "haproxy", "-v"))
	for _, kind := range []struct {
		name    string
		place   int
		start   func(t *testing.T, settings string, ports ...int) *proxy
		refuses bool // it reports streams as refused whose calls have run, which gRPC itself then retries
		text    string
	}{
		{"nginx", 10, func(t *testing.T, settings string, ports ...int) *proxy { return nginx(t, settings, "", ports...) }, false, nginxText},
		{"HAProxy", 11, func(t *testing.T, _ string, ports ...int) *proxy { return haproxy(t, "", ports...) }, true, haproxyText},
	} {
		t.Run(kind.name, func(t *testing.T) {
			clients := []client{bare(), grpcRetries(), ours(ourName, ""), ours(denyName, "transparentRetry: DENY")}
			shown := table{header: []string{"incident"}}
			for _, c := range clients {
				shown.header = append(shown.header, c.name)
			}
			twice := map[string]int{}    // by client
			reads := map[string][2]int{} // by client: good, all
			for _, i := range incidents {
				if i.nginx != "" && kind.name != "nginx" {
					continue
				}
				row := []string{i.name}
				for _, r := range i.play(t, clients, func(ports ...int) *proxy { return kind.start(t, i.nginx, ports...) }) {
					row = append(row, fmt.Sprintf("%s · %s · %d", percent(r.got.good(), len(r.got)), percent(r.made.good(), len(r.made)), r.twice))
					twice[r.client] += r.twice
					reads[r.client] = [2]int{reads[r.client][0] + r.got.good(), reads[r.client][1] + len(r.got)}
				}
				shown.rows = append(shown.rows, row)
			}
			evidence.add(kind.place, section{title: kind.name, text: kind.text, tables: []table{shown}})
			if twice[retriesName] == 0 {
				t.Error("gRPC's retries repeated nothing: calls that run twice would not be found")
			}
			if !kind.refuses && twice[ourName]+twice[bareName] > 0 || twice[denyName] > 0 {
				t.Errorf("calls not declared idempotent ran twice: %v", twice)
			}
			if kind.refuses {
				evidence.worse("Behind %s and without `transparentRetry: DENY`, %d calls not declared idempotent ran twice, as with gRPC alone (%d).", kind.name, twice[ourName], twice[bareName])
			}
			if kind.refuses && twice[bareName] == 0 {
				t.Log("gRPC by itself repeated nothing: this version refuses no streams that ran, and the text of the page is wrong for it")
			}
			if good := reads[ourName]; good[0]*100 < good[1]*99 {
				t.Errorf("stagger: %d of %d calls that may be repeated were good", good[0], good[1])
			}
		})
	}
}

const nginxText = `
Each client makes 80 calls a second, of 100 ms each, to two backends behind nginx; half of them are declared idempotent. Runs are counted in
the backends' handlers. In each cell: GetOrder, % good · CreateOrder, % good · calls of CreateOrder that ran twice.`

const haproxyText = `
The same behind HAProxy. When a backend dies during a call, HAProxy sends RST_STREAM(REFUSED_STREAM), which promises that nothing
ran. gRPC believes that and retries the call itself, even with retries off, so the call runs twice.
` + "`transparentRetry: DENY`" + ` prevents that for calls that are not declared idempotent.`

// played has the outcomes of a client's calls in an incident.
type played struct {
	client    string
	got, made outcomes
	twice     int // calls of CreateOrder that ran more than once
}

// play starts a proxy and two backends, and causes the incident while all clients make calls.
func (i incident) play(t *testing.T, clients []client, start func(ports ...int) *proxy) []played {
	const work = 100 * time.Millisecond
	l := newLedger()
	backends := []*backend{startBackend(t, l, work, i.maxAge), startBackend(t, l, work, i.maxAge)}
	p := start(backends[0].port, backends[1].port)
	loads := make([]*load, len(clients))
	for n, c := range clients {
		loads[n] = startLoad(t, c.name, 80, orders(dial(t, p.dialable(), c.options(t)...), getOrder, createOrder)...)
	}
	pass(t, 300*time.Millisecond)
	i.happen(t, p, backends)
	pass(t, 200*time.Millisecond)
	for _, l := range loads {
		l.stop()
	}
	results := make([]played, len(clients))
	for n, c := range clients {
		all := loads[n].end()
		r := played{c.name, all.of(getOrder), all.of(createOrder), l.repeated(loads[n].prefix() + createOrder)}
		t.Logf("%s: %s: good %d of %d, %d of %d, ran twice %d and %d, failed %v", i.name, c.name,
			r.got.good(), len(r.got), r.made.good(), len(r.made), l.repeated(loads[n].prefix()+getOrder), r.twice, all.codes())
		for _, o := range r.made {
			if o.err == nil && !l.ran(o.request) {
				t.Errorf("%s: %s was answered and never ran", i.name, o.request)
			}
		}
		results[n] = r
	}
	p.Kill()
	for _, b := range backends {
		b.Kill()
	}
	return results
}
