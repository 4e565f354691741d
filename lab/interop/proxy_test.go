// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// proxy is nginx or HAProxy in front of backends.
type proxy struct {
	*testkit.Process

	port    int
	command []string
	reloads syscall.Signal // makes it read its configuration again
}

// run starts the proxy, or restarts it.
func (p *proxy) run(t *testing.T) {
	t.Helper()
	p.Process = testkit.StartProcess(t, nil, nil, p.command[0], p.command[1:]...)
	listening(t, p.port)
}

// dialable returns the address for clients.
func (p *proxy) dialable() string { return address(p.port) }

// nginx starts nginx before backends. extra goes into its only location, and top next to its servers.
func nginx(t *testing.T, top, extra string, ports ...int) *proxy {
	t.Helper()
	p := &proxy{port: testkit.Port(t), reloads: syscall.SIGHUP}
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
	p := &proxy{port: testkit.Port(t), reloads: syscall.SIGUSR2}
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

// incidents are faults of a proxy and its backends while calls go on.
var incidents = []struct {
	name   string
	happen func(t *testing.T, p *proxy, b []*backend)
}{
	{"backends are killed in turn", func(t *testing.T, _ *proxy, b []*backend) {
		for n := range 6 {
			b[n%2].Kill()
			pass(t, 100*time.Millisecond)
			b[n%2].start(t)
			pass(t, 200*time.Millisecond)
		}
	}},
	{"the proxy reloads", func(t *testing.T, p *proxy, _ []*backend) {
		for range 3 {
			p.Signal(t, p.reloads)
			pass(t, 300*time.Millisecond)
		}
	}},
	{"the proxy is killed, and starts again at once", func(t *testing.T, p *proxy, _ []*backend) {
		p.Kill()
		p.run(t)
		pass(t, 500*time.Millisecond)
	}},
}

// limited reports whether a call failed at a limit of its policy: its budget, its attempts, or its time, of which a busy machine
// leaves less.
func limited(err error) bool {
	e, is := errors.AsType[*interceptor.Error](err)
	return is && slices.Contains([]policy.Reason{
		policy.ReasonBudgetExhausted, policy.ReasonAttemptsExhausted, policy.ReasonDeadlineExceeded, policy.ReasonDeadlineTooClose,
		policy.ReasonNotConnected, policy.ReasonSlowEverywhere,
	}, e.Reason)
}

// TestProxies makes every client call through a proxy in every incident, and counts handlers that ran twice for one
// non-idempotent call. gRPC's retries, which retry every method, show that the count can detect that.
func TestProxies(t *testing.T) {
	required(t)
	evidence.uses("nginx", version(t, "nginx", "-v"))
	evidence.uses("HAProxy", version(t, "haproxy", "-v"))
	for _, kind := range []struct {
		name    string
		place   int
		start   func(t *testing.T, extra string, ports ...int) *proxy
		refuses bool // it reports streams as refused whose calls have run, which gRPC itself then retries
		text    string
	}{
		{"nginx", 10, func(t *testing.T, extra string, ports ...int) *proxy { return nginx(t, "", extra, ports...) }, false, nginxText},
		{"HAProxy", 11, haproxy, true, haproxyText},
	} {
		t.Run(kind.name, func(t *testing.T) {
			clients := []client{bare(), grpcRetries(), ours()}
			shown := table{header: []string{"incident", bareName, retriesName, ourName}}
			twice, good, reads := map[string]int{}, map[string]int{}, 0
			for _, incident := range incidents {
				const work = 100 * time.Millisecond
				l := newLedger()
				backends := []*backend{startBackend(t, l, work), startBackend(t, l, work)}
				p := kind.start(t, "", backends[0].port, backends[1].port)
				row := []string{incident.name}
				all := underLoad(t, clients, 80, p.dialable(), func() {
					pass(t, 300*time.Millisecond)
					incident.happen(t, p, backends)
					pass(t, 200*time.Millisecond)
				})
				for i, c := range clients {
					if c.name == ourName {
						for _, o := range all[i].of(getOrder) {
							if o.err != nil && !limited(o.err) {
								t.Errorf("%s: %s ended with %v", incident.name, o.request, o.err)
							}
						}
					}
					got, made, again := all[i].of(getOrder), all[i].of(createOrder), l.repeated(c.name+" "+createOrder)
					row = append(row, fmt.Sprintf("%s · %s · %d", percent(got.good(), len(got)), percent(made.good(), len(made)), again))
					good[c.name] += got.good()
					twice[c.name] += again
					if c.name == ourName {
						reads += len(got)
					}
					for _, o := range made {
						if o.err == nil && !l.ran(o.request) {
							t.Errorf("%s: %s was answered and never ran", incident.name, o.request)
						}
					}
				}
				shown.rows = append(shown.rows, row)
				p.Kill()
			}
			evidence.add(kind.place, section{title: kind.name, text: kind.text, tables: []table{shown}})
			if twice[retriesName] == 0 {
				t.Error("gRPC's retries repeated nothing: calls that run twice would not be found")
			}
			if kind.refuses {
				evidence.worse("Behind %s, %d calls not declared idempotent ran twice, as with gRPC alone (%d).", kind.name, twice[ourName], twice[bareName])
			} else if twice[ourName]+twice[bareName] > 0 {
				t.Errorf("calls not declared idempotent ran twice: %v", twice)
			}
			if good[ourName]*100 < good[bareName]*99 || good[ourName]*10 < reads*9 {
				t.Errorf("stagger: %d of %d calls that may be repeated were good; without retries %d", good[ourName], reads, good[bareName])
			}
		})
	}
}

const nginxText = `
Each client makes 80 calls a second, of 100 ms each, to two backends behind nginx; half of them are declared idempotent. Runs are counted in
the backends' handlers. In each cell: GetOrder, % good · CreateOrder, % good · calls of CreateOrder that ran twice.`

const haproxyText = `
The same behind HAProxy. When a backend dies during a call, HAProxy sends RST_STREAM(REFUSED_STREAM), which promises that nothing
ran. gRPC believes that and retries the call itself, even with retries off, so the call runs twice.`
