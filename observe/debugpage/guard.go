// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/webhost"
)

// guard passes requests that may see the page to next.
func (c Config) guard(next http.Handler) http.Handler {
	return c.protect([]string{http.MethodGet}, next)
}

// protect passes authorized requests with these methods to next.
func (c Config) protect(methods []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !slices.Contains(methods, r.Method) {
			header.Set("Allow", strings.Join(methods, ", "))
			http.Error(w, "debugpage: only "+strings.Join(methods, " and ")+" is allowed", http.StatusMethodNotAllowed)
			return
		}
		who, why := c.refusal(r)
		if why != "" {
			http.Error(w, "debugpage: "+why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, who)))
	})
}

// whoKey is the context key of what Authorize has returned.
type whoKey struct{}

// caller returns who sends a request: the address, and the name that Authorize has returned.
func caller(r *http.Request) string {
	who, _ := r.Context().Value(whoKey{}).(string)
	return strings.TrimSpace(r.RemoteAddr + " " + who)
}

// refusal returns who sends a request, as Authorize says, and why it may not see the page, or "".
func (c Config) refusal(r *http.Request) (who, why string) {
	if c.Authorize == nil {
		if !isLoopback(r.RemoteAddr) || !isLoopback(localAddr(r)) {
			return "", "the page is for this machine only, and both ends of the connection must be loopback addresses, unless debugpage.Config.Authorize is set"
		}
		for name := range r.Header {
			if forwards(name) {
				return "", "a proxy asks for another client (" + name + "), and the page is for this machine only, unless debugpage.Config.Authorize is set"
			}
		}
	}
	if !webhost.Accepted(r.Host, c.Hosts) {
		return "", fmt.Sprintf("host %.100q: must be localhost, an IP address, or one of debugpage.Config.Hosts", r.Host)
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return "", "another site asks for it"
	}
	if c.Authorize != nil {
		who, err := c.Authorize(r)
		if err != nil {
			return "", err.Error()
		}
		return who, ""
	}
	return "", ""
}

// localAddr returns a request's local address, or "" if the server doesn't set it. A sidecar that forwards requests of other
// machines uses a loopback address too, but connects to the pod's.
func localAddr(r *http.Request) string {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return addr.String()
	}
	return ""
}

// forwards reports whether a header is typical of proxies.
func forwards(name string) bool {
	return slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip"}, name) ||
		strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-")
}

// isLoopback reports whether an address with a port is a loopback address.
func isLoopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
