// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	const local = "127.0.0.1:4242"
	remote, named := Config{Remote: true}, Config{Hosts: []string{"Debug.Example"}}
	type header = map[string]string
	for name, row := range map[string]struct {
		config       Config
		method, from string
		host         string
		header       header
		want         int
	}{
		"this machine":             {Config{}, "GET", local, "localhost:6060", nil, 200},
		"IPv6":                     {Config{}, "GET", "[::1]:4242", "[::1]:6060", nil, 200},
		"IPv6 without port":        {Config{}, "GET", "[::1]:4242", "[::1]", nil, 200},
		"IPv4 in IPv6":             {Config{}, "GET", "[::ffff:127.0.0.1]:4242", "127.0.0.1", nil, 200},
		"another machine":          {Config{}, "GET", "192.0.2.7:4242", "localhost", nil, 403},
		"a private address":        {Config{}, "GET", "10.0.0.7:4242", "10.0.0.1", nil, 403},
		"an address of no form":    {Config{}, "GET", "@", "localhost", nil, 403},
		"another machine, allowed": {remote, "GET", "192.0.2.7:4242", "192.0.2.1:6060", nil, 200},
		"a proxy here":             {Config{}, "GET", local, "localhost", header{"X-Forwarded-For": "192.0.2.7"}, 403},
		"a standard proxy here":    {Config{}, "GET", local, "localhost", header{"Forwarded": "for=192.0.2.7"}, 403},
		"a proxy here, allowed":    {remote, "GET", local, "localhost", header{"X-Forwarded-For": "192.0.2.7"}, 200},
		"a name given to us":       {Config{}, "GET", local, "evil.example:6060", nil, 403},
		"localhost in front":       {Config{}, "GET", local, "localhost.evil.example", nil, 403},
		"an address in front":      {Config{}, "GET", local, "127.0.0.1.evil.example", nil, 403},
		"localhost with a dot":     {Config{}, "GET", local, "LOCALHOST.:6060", nil, 200},
		"no host":                  {Config{}, "GET", local, "", nil, 403},
		"a bracket too many":       {Config{}, "GET", local, "[localhost]", nil, 403},
		"remote, a name given":     {remote, "GET", "192.0.2.7:4242", "evil.example", nil, 403},
		"a name that is known":     {named, "GET", local, "debug.example:6060", nil, 200},
		"part of a known name":     {named, "GET", local, "x.debug.example", nil, 403},
		"POST":                     {Config{}, "POST", local, "localhost", nil, 405},
		"HEAD":                     {Config{}, "HEAD", local, "localhost", nil, 405},
		"DELETE from elsewhere":    {Config{}, "DELETE", "192.0.2.7:4242", "localhost", nil, 405},
		"another site's script":    {Config{}, "GET", local, "localhost", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403},
		"another site's link":      {Config{}, "GET", local, "localhost", header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200},
		"the page's own script":    {Config{}, "GET", local, "localhost", header{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, h := range map[string]http.Handler{"page": row.config.Handler(newRetrier(t)), "none": row.config.Handler()} {
				r := httptest.NewRequest(row.method, "/debug/stagger/", strings.NewReader(""))
				r.RemoteAddr, r.Host = row.from, row.host
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
