// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package debugpage shows what Retriers do, live, to a person with a browser: budgets, calls that wait, the policies
// that run, the last decisions with their reasons, and what the policies do for a method.
//
//	http.Handle("/debug/stagger/", debugpage.Handler(retrier))
//	go http.ListenAndServe("localhost:6060", nil)
//
// The page is whole without a script; with one it follows what happens. The same is there as JSON, in state.json and
// explain.json beside the page.
package debugpage

import (
	"net/http"
	"slices"

	"github.com/stagger-go/stagger/interceptor"
)

// Handler shows Retriers to browsers on the same machine, as the zero [Config] does.
func Handler(retriers ...*interceptor.Retrier) http.Handler { return Config{}.Handler(retriers...) }

// Config says who may see the page or use the switch, and how much the page shows.
type Config struct {
	// Authorize says why a request is refused; nil: it is not. It is asked of every request, those from other machines
	// included: the page says a lot about a program. Without Authorize, only connections from a loopback address to one
	// are answered, unless a proxy has made them for others. A server other than net/http's must say to which
	// ([http.LocalAddrContextKey]).
	Authorize func(*http.Request) error
	// Hosts are the names that the handlers may be asked for by, without port, beside localhost and IP addresses. Any other is
	// refused, since a web site may give its own name to the address of this machine.
	Hosts []string
	// Errors shows the texts of errors. Servers write them, and may put data of users in.
	Errors bool
}

// Handler shows Retriers, and remembers their decisions from now on ([interceptor.Retrier.Observe]): the last 256, and counts of the last five
// minutes. It may
// be mounted at any path that ends with a slash, and registers itself nowhere. Without a Retrier it says so.
//
// It answers GET alone. At most 16 browsers follow at a time; the connection of one that does not read is cut. A
// live connection ends after a minute, and the browser makes another: so long may http.Server.Shutdown wait.
func (c Config) Handler(retriers ...*interceptor.Retrier) http.Handler {
	if len(retriers) == 0 || slices.Contains(retriers, nil) {
		return c.guard(http.HandlerFunc(noRetrier))
	}
	return c.guard(newPage(c, retriers))
}

func noRetrier(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "debugpage: no Retrier is shown: the handler was made without one, or with one that is nil; "+
		"it is made by debugpage.Handler(retrier), of a Retrier of interceptor.New, Load or Watch", http.StatusServiceUnavailable)
}
