// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	maxReply     = 1 << 20 // bytes: clients take 4 MiB unless they are told otherwise
)

// ListAttempts implements the service's method of this name.
func (s *service) ListAttempts(_ context.Context, r *faultserverv1.ListAttemptsRequest) (*faultserverv1.ListAttemptsResponse, error) {
	pattern, err := filter(r.GetMethod(), r.GetLimit())
	if err != nil {
		return nil, err
	}
	limit := int(cmp.Or(r.GetLimit(), defaultLimit))
	reply := &faultserverv1.ListAttemptsResponse{Count: uint32(s.server.Count(pattern))}
	left := maxReply
	for _, a := range s.server.Attempts() {
		if a.Serial <= int(r.GetAfter()) || !matches(pattern, a.Method) {
			continue
		}
		p := Attempt(a)
		left -= proto.Size(p)
		if r.GetRequests() {
			left = withRequests(p, a, left, len(reply.GetAttempts()) == 0)
		}
		if len(reply.GetAttempts()) == limit || len(reply.GetAttempts()) > 0 && left < 0 {
			reply.More = true
			break
		}
		reply.Attempts = append(reply.Attempts, p)
	}
	return reply, nil
}

// withRequests adds the messages of a, and returns how many bytes are left after them: none if they do not fit.
// The first attempt of a list gets those that do.
func withRequests(p *faultserverv1.Attempt, a testserver.Attempt, left int, first bool) int {
	const header = 6 // tag and length
	for _, m := range a.Requests {
		if first && left < len(m)+header {
			break
		}
		left -= len(m) + header
		p.Requests = append(p.Requests, m)
	}
	return left
}

// filter checks what is asked for.
func filter(method string, limit uint32) (pattern string, err error) {
	var report document.Report
	if method != "" && !patternForm.MatchString(method) {
		report.Errorf("method", method, `must be "/package.Service/Method", "/package.Service/*", "*" or empty`)
	}
	if limit > maxLimit {
		report.Errorf("limit", limit, "must be at most %d", maxLimit)
	}
	return cmp.Or(method, everything), invalid(&report)
}

// matches says whether a pattern is for a method.
func matches(pattern, method string) bool {
	if prefix, many := strings.CutSuffix(pattern, "*"); many {
		return strings.HasPrefix(method, prefix)
	}
	return pattern == method
}
