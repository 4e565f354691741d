// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Before calls f after the server has received the first message, and before it sends headers. In a [Stream], the server receives no
// message first. An error of f ends the attempt, as an error of a gRPC handler would. f may wait, but must return when its context is
// done: when the client has gone away, its deadline has passed or the server stops. f must be safe for concurrent use.
func (s Step) Before(f func(context.Context) error) Step {
	if f == nil {
		return s.Invalid(errors.New("Before(nil): want a function"))
	}
	s.before = f
	return s
}

// RawReplies adds messages as raw bytes, valid or not. The server sends them after the messages of [OK], and before the end of the step.
func (s Step) RawReplies(messages ...[]byte) Step {
	if s.then != nil && s.then.end == endCut {
		return s.Invalid(errors.New("messages after Cut: the connection is gone: want them before it"))
	}
	s.replies = slices.Clip(s.replies) // the copy must not write into the original
	for _, b := range messages {
		s.replies = append(s.replies, slices.Clone(b))
	}
	return s
}

// Header adds response headers, to send before the delay and the end. So a failure is
// not a Trailers-Only response, and commits the call by gRFC A6.
func (s Step) Header(md metadata.MD) Step {
	s.header = metadata.Join(s.header, lower(md))
	return s.checkKeys("Header", md)
}

// Trailer adds trailers.
func (s Step) Trailer(md metadata.MD) Step {
	s.trailer = metadata.Join(s.trailer, lower(md))
	return s.checkKeys("Trailer", md)
}

// Pushback adds the trailer grpc-retry-pushback-ms (gRFC A6) with these values, unchanged. One value is usual. Use none, several or invalid
// ones to test the client's parser.
func (s Step) Pushback(values ...string) Step {
	return s.Trailer(metadata.MD{"grpc-retry-pushback-ms": values})
}

// RetryInfo adds a google.rpc.RetryInfo to the details of a failure: "come back in d".
func (s Step) RetryInfo(d time.Duration) Step {
	if s.end != endFail {
		return s.Invalid(errors.New("RetryInfo: only a failure has details: want Fail(…).RetryInfo(…)"))
	}
	st, err := s.status.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
	if err != nil {
		return s.Invalid(fmt.Errorf("RetryInfo: %w", err))
	}
	s.status = st
	return s
}

func lower(md metadata.MD) metadata.MD {
	out := metadata.MD{}
	for k, v := range md {
		out.Append(k, v...)
	}
	return out
}

func (s Step) checkKeys(what string, md metadata.MD) Step {
	if err := checkKeys(what, md); err != nil {
		return s.Invalid(err)
	}
	return s
}

// checkKeys refuses keys that gRPC writes itself, because gRPC would silently drop them.
func checkKeys(what string, md metadata.MD) error {
	var errs []error
	for k := range md {
		switch key := strings.ToLower(k); {
		case key == "", strings.HasPrefix(key, ":"), slices.Contains(reserved, key):
			errs = append(errs, fmt.Errorf("%s(%q): gRPC writes this key itself: want another", what, k))
		}
	}
	return errors.Join(errs...)
}

var reserved = []string{
	"content-type", "user-agent", "te",
	"grpc-status", "grpc-message", "grpc-status-details-bin",
	"grpc-encoding", "grpc-message-type", "grpc-timeout",
}
