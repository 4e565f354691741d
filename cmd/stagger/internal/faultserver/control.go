// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/steps"
	"github.com/stagger-go/stagger/testserver"
)

// control controls a server, and lists its attempts, over HTTP:
//
//	PUT    /scripts   replaces scripts of methods; the body is a script file
//	POST   /scripts   appends steps to scripts, whose last step then no longer repeats
//	DELETE /scripts   removes the script of ?method=
//	GET    /attempts  lists the attempts since the start or the last reset; see [query]
//	DELETE /attempts  clears the list and restarts the scripts
//	POST   /reset     clears the list, and restores and restarts the scripts of the script file
//
// A request with an error changes nothing.
type control struct {
	server *testserver.Server
	known  *registry
	file   string // the script file, which reset restores; "": none
	data   []byte

	mu      sync.Mutex
	now     script
	events  int           // number of begins and ends of attempts
	changed chan struct{} // closed at the next event
}

func newControl(known *registry) *control {
	return &control{known: known, changed: make(chan struct{})}
}

// load sets the script file, if it is valid.
func (c *control) load(file string, data []byte) error {
	c.file, c.data = file, data
	_, err := parse(file, data, c.known, script{}, false)
	return err
}

// handler returns the routes. It protects against requests by other sites in a browser on this machine.
func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	for route, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"PUT /scripts":     func(_ http.ResponseWriter, r *http.Request) error { return c.change(r, c.server.On, false) },
		"POST /scripts":    func(_ http.ResponseWriter, r *http.Request) error { return c.change(r, c.add, true) },
		"DELETE /scripts":  func(_ http.ResponseWriter, r *http.Request) error { return c.remove(r.FormValue("method")) },
		"GET /attempts":    c.list,
		"DELETE /attempts": func(http.ResponseWriter, *http.Request) error { c.forget(); return nil },
		"POST /reset":      func(http.ResponseWriter, *http.Request) error { c.forget(); return c.restore() },
	} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			if err := handle(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
	return http.NewCrossOriginProtection().Handler(mux)
}

// restore sets the scripts of the script file.
func (c *control) restore() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := script{steps: map[string][]testserver.Step{}}
	if c.file != "" {
		var err error
		if next, err = parse(c.file, c.data, c.known, script{}, false); err != nil {
			return err
		}
	}
	for pattern := range c.now.steps {
		c.server.On(pattern)
	}
	for pattern, list := range next.steps {
		c.server.On(pattern, list...)
	}
	c.now = next
	return nil
}

// add appends steps to a script.
func (c *control) add(pattern string, more ...testserver.Step) {
	for _, step := range more {
		steps.Add(c.server, pattern, step)
	}
}

// change replaces scripts, or appends to them.
func (c *control) change(r *http.Request, how func(string, ...testserver.Step), appending bool) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, document.MaxBytes+1))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := parse("", data, c.known, c.now, appending)
	if err != nil {
		return err
	}
	for pattern, list := range next.steps {
		how(pattern, list...)
		if appending {
			list = slices.Concat(c.now.steps[pattern], list)
		}
		c.now.steps[pattern] = list
	}
	c.now.queues = next.queues
	return nil
}

// remove removes a script.
func (c *control) remove(pattern string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.now.steps[pattern]; !ok {
		return fmt.Errorf("method: %q: has no script: must be a method as given in a script", pattern)
	}
	delete(c.now.steps, pattern)
	c.server.On(pattern)
	return nil
}

func (c *control) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.Reset()
	c.events = -1
	c.countEvent()
}

// observe counts the begin or the end of an attempt.
func (c *control) observe(testserver.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countEvent()
}

// countEvent counts an event. c.mu must be held.
func (c *control) countEvent() {
	c.events++
	close(c.changed)
	c.changed = make(chan struct{})
}

// query selects the attempts to list, and when.
type query struct {
	method   string        // one method, the methods of a service, or all, as in a script; all if absent
	after    int           // attempts with a greater serial
	requests bool          // include the messages that
	wait     time.Duration // at most this time,
	events   int
}

func readQuery(values url.Values) (q query, err error) {
	q.method = everything
	for key, list := range values {
		value, want := list[0], ""
		switch key {
		case "method":
			if q.method = value; !patternForm.MatchString(value) {
				want = patternWant
			}
		case "after":
			if q.after, err = strconv.Atoi(value); err != nil {
				want = "must be an attempt's serial"
			}
		case "requests":
			if q.requests, err = strconv.ParseBool(value); err != nil {
				want = "must be true or false"
			}
		case "wait":
			if q.wait, err = time.ParseDuration(value); err != nil {
				want = "must be a duration: 5s"
			}
		case "events":
			if q.events, err = strconv.Atoi(value); err != nil {
				want = "must be the number of events of an earlier list"
			}
		default:
			want = "unknown; must be method, after, requests, wait or events"
		}
		if want != "" {
			return q, fmt.Errorf("%s: %q: %s", key, value, want)
		}
	}
	return q, nil
}

// attemptList is the answer to GET /attempts.
type attemptList struct {
	Attempts []attempt `json:"attempts"`
	Count    int       `json:"count"`  // attempts of these methods so far, including those no longer kept
	Events   int       `json:"events"` // begins and ends of attempts of any method
}

// list writes the attempts. An answered attempt has ended in the list; one that its client has given up may run a moment
// longer.
func (c *control) list(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r.URL.Query())
	if err != nil {
		return err
	}
	list := attemptList{Attempts: []attempt{}, Events: c.await(r.Context(), q)}
	list.Count = c.server.Count(q.method)
	prefix, many := strings.CutSuffix(q.method, "*")
	for _, a := range c.server.Attempts() {
		if a.Serial > q.after && (a.Method == q.method || many && strings.HasPrefix(a.Method, prefix)) {
			j := toJSON(a)
			if q.requests {
				j.Requests = a.Requests
			}
			list.Attempts = append(list.Attempts, j)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // an error means that the client has
	return nil
}

// await waits as the query demands, and returns the number of events.
func (c *control) await(ctx context.Context, q query) int {
	ctx, cancel := context.WithTimeout(ctx, q.wait)
	defer cancel()
	for {
		c.mu.Lock()
		events, changed := c.events, c.changed
		c.mu.Unlock()
		if events != q.events || ctx.Err() != nil {
			return events
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
