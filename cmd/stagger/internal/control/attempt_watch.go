// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// maxBehind is how many attempts may wait for a watcher: attempts do not wait for watchers.
const maxBehind = 1024

// watches are who wants to see attempts.
type watches struct {
	mu   sync.Mutex
	open map[chan *faultserverv1.Attempt]string // the pattern; a channel that is closed fell behind
}

// notify shows an attempt to whoever watches its method.
func (w *watches) notify(a testserver.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var p *faultserverv1.Attempt
	for watch, pattern := range w.open {
		if !matches(pattern, a.Method) {
			continue
		}
		if p == nil {
			p = Attempt(a)
		}
		select {
		case watch <- p:
		default:
			close(watch)
			delete(w.open, watch)
		}
	}
}

func (w *watches) begin(pattern string) chan *faultserverv1.Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[chan *faultserverv1.Attempt]string{}
	}
	watch := make(chan *faultserverv1.Attempt, maxBehind)
	w.open[watch] = pattern
	return watch
}

func (w *watches) end(watch chan *faultserverv1.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, watch)
}

// WatchAttempts implements the service's method of this name.
func (s *service) WatchAttempts(r *faultserverv1.WatchAttemptsRequest, stream grpc.ServerStreamingServer[faultserverv1.WatchAttemptsResponse]) error {
	pattern, err := filter(r.GetMethod(), 0)
	if err != nil {
		return err
	}
	watch := s.watches.begin(pattern)
	defer s.watches.end(watch)
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	for {
		select {
		case a, ok := <-watch:
			if !ok {
				return status.Errorf(codes.ResourceExhausted, "the watcher is %d attempts behind", maxBehind)
			}
			if err := stream.Send(&faultserverv1.WatchAttemptsResponse{Attempt: a}); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}
