// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/testserver"
)

// notes has the attempts that an observer received.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(a testserver.Attempt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	state := "begins"
	if !a.End.IsZero() {
		state = a.Code.String()
	}
	n.list = append(n.list, fmt.Sprintf("%d %s %d messages", a.Number, state, a.Received))
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.list, ", ")
}

func TestObserve(t *testing.T) {
	var first, second notes
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable), testserver.OK())
		s.call(t.Context(), get)
		s.call(t.Context(), list)
		s.call(t.Context(), get) // what its client knows, an observer knows too
		const want = "1 begins 0 messages, 1 Unavailable 1 messages, 1 begins 0 messages, 1 OK 1 messages, 2 begins 0 messages, 2 OK 1 messages"
		wantText(t, "observed", first.String(), want)
		wantText(t, "observed by the second", second.String(), want)
		s.Reset()
		s.call(t.Context(), get)
		if a := first.String(); !strings.HasSuffix(a, "1 Unavailable 1 messages") {
			t.Errorf("after Reset: %s; want numbers from 1", a)
		}
	}, testserver.Keep(0), testserver.Observe(first.add), testserver.Observe(second.add))
}
