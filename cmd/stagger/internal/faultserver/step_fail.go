// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/internal/codename"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// fail makes the step that ends with an error.
func (b *builder) fail(path string, f *faultserverv1.Fail) testserver.Step {
	c, ok := b.code(path+".code", f.GetCode())
	if !ok {
		return testserver.Step{}
	}
	text := "scripted failure"
	if f.Message != nil {
		text = f.GetMessage()
	}
	details := slices.Clone(f.GetDetails())
	if d := f.GetRetryInfo(); d != nil { // as it is: no time.Duration holds all of them
		info, err := anypb.New(&errdetails.RetryInfo{RetryDelay: d})
		if err != nil {
			b.report.Errorf(path+".retryInfo", d, "%v", err)
		}
		details = append(details, info)
	}
	return testserver.FailStatus(status.FromProto(&spb.Status{Code: int32(c), Message: text, Details: details}))
}

// code reads the code of a failure.
func (b *builder) code(path, name string) (codes.Code, bool) {
	const want = "must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"
	c, ok := codename.Parse(name)
	switch {
	case name == "":
		b.report.Errorf(path, nil, want)
	case !ok:
		b.report.Errorf(path, name, want)
	default:
		return c, true
	}
	return c, false
}
