// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/webhost"
	"github.com/stagger-go/stagger/testserver"
)

// controlHeader must be 1 in each POST: no page of another site can send it.
const controlHeader = "X-Stagger-Control"

// control sets the scripts of a server, and lists its attempts, over HTTP.
type control struct {
	server *testserver.Server
	known  *protoregistry.Files
	hosts  []string // accepted host names besides localhost and IP addresses
	first  map[string][]testserver.Step

	mu sync.Mutex // held while the scripts are replaced, and while the attempts are listed
}

// set replaces all scripts, and clears the list of attempts, in one step.
func (c *control) set(next map[string][]testserver.Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Replace(next)
}

// ServeHTTP answers a POST, whose body is a script file, or empty for the scripts of --script, and a GET of the attempts since the
// last POST. A script with errors changes nothing.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !webhost.Accepted(r.Host, c.hosts):
		http.Error(w, fmt.Sprintf("host %.100q: must be localhost, an IP address, or a name given by --control-host", r.Host), http.StatusForbidden)
	case r.URL.Path != "/":
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		c.list(w)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "must be GET or POST", http.StatusMethodNotAllowed)
	case r.Header.Get(controlHeader) != "1":
		http.Error(w, "the header "+controlHeader+": 1 is missing", http.StatusForbidden)
	default:
		if err := c.change(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

func (c *control) change(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, document.MaxBytes+1))
	if err != nil {
		return err
	}
	next := c.first
	if len(data) > 0 {
		if next, err = parse("", data, c.known); err != nil {
			return err
		}
	}
	return c.set(next)
}

// attemptList is the response to GET.
type attemptList struct {
	Attempts []attempt `json:"attempts"`
	Count    int       `json:"count"` // attempts so far, including those that the list no longer has
}

// list writes the attempts. An answered attempt has ended in the list; one that its client has given up may run a moment
// longer.
func (c *control) list(w http.ResponseWriter) {
	c.mu.Lock()
	kept, count := c.server.Attempts(), c.server.Count("*") // in this order: the count has all that the list has
	c.mu.Unlock()
	list := attemptList{Attempts: []attempt{}, Count: count}
	for _, a := range kept {
		j := toJSON(a)
		j.Requests = a.Requests
		list.Attempts = append(list.Attempts, j)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		return // the client has gone
	}
}

// attempt is one request as the server received it, in JSON.
type attempt struct {
	Method           string              `json:"method"`
	Number           int                 `json:"number"`     // among those of its method, from 1
	Connection       int                 `json:"connection"` // from 1
	StartTime        time.Time           `json:"startTime"`
	EndTime          *time.Time          `json:"endTime"`          // null while it runs
	TimeoutSeconds   float64             `json:"timeoutSeconds"`   // at its start, until the client's deadline; 0 without one
	PreviousAttempts int                 `json:"previousAttempts"` // as sent by the client (gRFC A6)
	Metadata         map[string][]string `json:"metadata"`         // values of keys that end in -bin in base64
	MessagesReceived int                 `json:"messagesReceived"`
	HalfClosed       bool                `json:"halfClosed"`
	MessagesSent     int                 `json:"messagesSent"`
	Code             string              `json:"code"`      // empty while it runs
	Cancelled        bool                `json:"cancelled"` // by the client, its deadline or its connection
	Requests         [][]byte            `json:"requests,omitempty"`
}

// toJSON returns an attempt without requests.
func toJSON(a testserver.Attempt) attempt {
	j := attempt{
		Method: a.Method, Number: a.Number, Connection: a.Conn,
		StartTime: a.Time, TimeoutSeconds: a.Timeout.Seconds(),
		PreviousAttempts: previous(a.Metadata), Metadata: maps.Clone(a.Metadata),
		MessagesReceived: a.Received, HalfClosed: a.HalfClosed, MessagesSent: a.Sent,
		Cancelled: a.Cancelled,
	}
	if !a.End.IsZero() {
		j.EndTime, j.Code = &a.End, codename.Of(a.Code)
	}
	for key, values := range j.Metadata {
		if strings.HasSuffix(key, "-bin") {
			values = slices.Clone(values)
			for i, v := range values {
				values[i] = base64.StdEncoding.EncodeToString([]byte(v))
			}
			j.Metadata[key] = values
		}
	}
	return j
}

// previous returns the client's grpc-previous-rpc-attempts (gRFC A6), or 0 if it is invalid.
func previous(md metadata.MD) int {
	values := md.Get("grpc-previous-rpc-attempts")
	if len(values) != 1 {
		return 0
	}
	n, _ := strconv.ParseUint(values[0], 10, 31)
	return int(n)
}
