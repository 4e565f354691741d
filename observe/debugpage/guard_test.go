// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func anyone(*http.Request) (string, error) { return "", nil }

func TestGuard(t *testing.T) {
	t.Parallel()
	const local, here = "127.0.0.1:4242", "127.0.0.1:6060"
	remote, named := Config{Authorize: anyone}, Config{Hosts: []string{"Debug.Example"}}
	type header = map[string]string
	for name, row := range map[string]struct {
		config       Config
		method, from string
		host         string
		header       header
		want         int
	}{
		"this machine":               {Config{}, "GET", local, "localhost:6060", nil, 200},
		"IPv6":                       {Config{}, "GET", "[::1]:4242", "[::1]:6060", nil, 200},
		"IPv6 without port":          {Config{}, "GET", "[::1]:4242", "[::1]", nil, 200},
		"IPv4 in IPv6":               {Config{}, "GET", "[::ffff:127.0.0.1]:4242", "127.0.0.1", nil, 200},
		"another machine":            {Config{}, "GET", "192.0.2.7:4242", "localhost", nil, 403},
		"a private address":          {Config{}, "GET", "10.0.0.7:4242", "10.0.0.1", nil, 403},
		"an address of no form":      {Config{}, "GET", "@", "localhost", nil, 403},
		"another machine, allowed":   {remote, "GET", "192.0.2.7:4242", "192.0.2.1:6060", nil, 200},
		"a proxy here":               {Config{}, "GET", local, "localhost", header{"X-Forwarded-For": "192.0.2.7"}, 403},
		"a standard proxy here":      {Config{}, "GET", local, "localhost", header{"Forwarded": "for=192.0.2.7"}, 403},
		"a side-car's headers":       {Config{}, "GET", local, "localhost", header{"X-Envoy-Expected-Rq-Timeout-Ms": "15000"}, 403},
		"a proxy that says its name": {Config{}, "GET", local, "localhost", header{"Via": "1.1 gateway"}, 403},
		"a proxy here, allowed":      {remote, "GET", local, "localhost", header{"X-Forwarded-For": "192.0.2.7"}, 200},
		"a name given to us":         {Config{}, "GET", local, "evil.example:6060", nil, 403},
		"localhost in front":         {Config{}, "GET", local, "localhost.evil.example", nil, 403},
		"an address in front":        {Config{}, "GET", local, "127.0.0.1.evil.example", nil, 403},
		"localhost with a dot":       {Config{}, "GET", local, "LOCALHOST.:6060", nil, 200},
		"no host":                    {Config{}, "GET", local, "", nil, 403},
		"a bracket too many":         {Config{}, "GET", local, "[localhost]", nil, 403},
		"remote, a name given":       {remote, "GET", "192.0.2.7:4242", "evil.example", nil, 403},
		"a name that is known":       {named, "GET", local, "debug.example:6060", nil, 200},
		"part of a known name":       {named, "GET", local, "x.debug.example", nil, 403},
		"POST":                       {Config{}, "POST", local, "localhost", nil, 405},
		"HEAD":                       {Config{}, "HEAD", local, "localhost", nil, 405},
		"DELETE from elsewhere":      {Config{}, "DELETE", "192.0.2.7:4242", "localhost", nil, 405},
		"another site's script":      {Config{}, "GET", local, "localhost", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403},
		"another site's link":        {Config{}, "GET", local, "localhost", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200},
		"the page's own script":      {Config{}, "GET", local, "localhost", header{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, h := range map[string]http.Handler{"page": row.config.Handler(newRetrier(t)), "none": row.config.Handler()} {
				r := httptest.NewRequest(row.method, "/debug/stagger/", strings.NewReader(""))
				r.RemoteAddr, r.Host = row.from, row.host
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tcp(here)))
				for name, value := range row.header {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != row.want && (w.Code != http.StatusServiceUnavailable || row.want != http.StatusOK) {
					t.Errorf("%d %s; want %d", w.Code, w.Body, row.want)
				}
				if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(got, "unsafe") {
					t.Errorf("Content-Security-Policy: %s", got)
				}
				if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "GET" {
					t.Errorf("Allow: %q", w.Header().Get("Allow"))
				}
			}
		})
	}
}

func tcp(address string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)) }

// A sidecar forwards requests of other machines: from a loopback address, to the pod's.
func TestGuardBothEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		to   any
		want int
	}{
		"to this machine":           {tcp("127.0.0.1:6060"), 200},
		"to this machine, IPv6":     {tcp("[::1]:6060"), 200},
		"to the pod, by a side-car": {tcp("10.4.0.7:6060"), 403},
		"to an unknown host":        {nil, 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:6060/debug/stagger/", nil)
		r.RemoteAddr = "127.0.0.6:4242"
		if row.to != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, row.to))
		}
		for config, want := range map[*Config]int{{}: row.want, {Authorize: anyone}: 200} {
			w := httptest.NewRecorder()
			config.Handler(newRetrier(t)).ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s, %+v: %d; want %d", name, *config, w.Code, want)
			}
		}
	}
}
