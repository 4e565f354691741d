// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	maxListeners = 16
	refresh      = time.Second      // between two checks for changes
	patience     = 5 * time.Second  // for a listener to read
	session      = 60 * time.Second // after which a listener reconnects
)

// serveEvents sends changed sections of the page to a listener, as server-sent events, until the listener leaves, reads too
// slowly or has listened for a minute.
func (p *page) serveEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case p.listeners <- struct{}{}:
		defer func() { <-p.listeners }()
	default:
		w.Header().Set("Retry-After", "60")
		http.Error(w, fmt.Sprintf("debugpage: %d listeners are connected, and more are not let in; reload the page instead", maxListeners), http.StatusServiceUnavailable)
		return
	}
	l := listener{w: w, out: http.NewResponseController(w), sent: map[string]section{}}
	if err := l.out.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		http.Error(w, "debugpage: this connection cannot be cut when it is not read, so nothing is sent live: "+err.Error(), http.StatusNotImplemented)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not delay events
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	end := time.NewTimer(session)
	defer end.Stop()
	method := r.URL.Query().Get("method")
	for {
		var sections []section
		err := safely(func() (err error) {
			sections, err = p.sections(method)
			return err
		})
		if err == nil {
			err = l.send(sections)
		}
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}

// listener is a browser with live updates.
type listener struct {
	w    http.ResponseWriter
	out  *http.ResponseController
	sent map[string]section // by id, as the listener has them
}

// send sends the changed sections, or a comment if there are none, to check that the browser still reads.
func (l *listener) send(sections []section) error {
	if err := l.out.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	changed := false
	for _, s := range sections {
		if l.sent[s.ID] == s {
			continue
		}
		l.sent[s.ID], changed = s, true
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(l.w, "event: section\ndata: %s\n\n", data); err != nil {
			return err
		}
	}
	if !changed {
		if _, err := fmt.Fprint(l.w, ":\n\n"); err != nil {
			return err
		}
	}
	return l.out.Flush()
}
