// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package debugpage serves a live page about Retriers: budgets, waiting calls, the current
// policies, the last decisions with their reasons, and an explanation of the policies for a method.
//
//	http.Handle("/debug/stagger/", debugpage.Config{}.Handler(retrier))
//	return http.ListenAndServe("localhost:6060", nil)
//
// The page works without JavaScript; with it, the page updates itself. state.json, in the same
// folder, has its data as JSON.
package debugpage

import (
	"net/http"
	"slices"

	"github.com/stagger-go/stagger/interceptor"
)

// Config sets who may see the page or use the switch, and which details the page shows. The zero Config serves browsers on the
// same machine.
type Config struct {
	// Authorize returns an error to refuse a request, or the name of its sender, for the log of the switch. It is called for every request,
	// including those from other machines: the page reveals a lot about a program. Without Authorize, the page serves only connections
	// between loopback addresses, and refuses requests with a header that proxies add, such as X-Forwarded-For. The page can't distinguish
	// a browser from a proxy on this machine that adds no header: set Authorize if such a proxy forwards to the page. A server other than
	// net/http's must set the local address ([http.LocalAddrContextKey]).
	Authorize func(*http.Request) (who string, err error)
	// Hosts are the accepted host names, without port, in addition to localhost and IP addresses. Requests for other names are
	// refused, because a web site may point its own name to the address of this machine.
	Hosts []string
	// ShowErrors shows the texts of errors. Servers write them, and they may contain user data.
	ShowErrors bool
}

// Handler serves the page, and records the Retriers' decisions from now on: the last 256. You can mount it at any path that ends
// with a slash; it does not register itself.
//
// It accepts only GET. At most 16 browsers get live updates at a time; slow readers are disconnected. A live connection ends after a
// minute, and the browser reconnects: http.Server.Shutdown may wait that long.
func (c Config) Handler(retriers ...*interceptor.Retrier) http.Handler {
	if len(retriers) == 0 || slices.Contains(retriers, nil) {
		return c.guard(http.HandlerFunc(noRetrier))
	}
	return c.guard(newPage(c, retriers))
}

// made reports whether all Retriers are: a zero one, or one that is still being made, has nothing to show.
func made(retriers []*interceptor.Retrier) bool {
	return !slices.ContainsFunc(retriers, func(r *interceptor.Retrier) bool { return r.State().Policies == nil })
}

func noRetrier(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "debugpage: no Retrier is shown: the handler was made without one, or with one that is nil or its zero value; "+
		"it is made by debugpage.Config{}.Handler(retrier), of a Retrier of interceptor.New, Load or Watch", http.StatusServiceUnavailable)
}
