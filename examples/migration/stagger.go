// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	_ "embed"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// Policies is retry.yaml, which all the ways lead to.
//
//go:embed retry.yaml
var Policies []byte

// Stagger is what they become.
func Stagger() Client { return Client{dialStagger, get, create} }

func dialStagger(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	set, err := policy.Parse("retry.yaml", Policies)
	if err != nil {
		return nil, err
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(target, append(opts, retrier.DialOptions()...)...)
}
