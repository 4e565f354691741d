// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// The package comment shows it.
func packageComment() (*interceptor.Retrier, error) {
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 2s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`))
	if err != nil {
		return nil, err
	}
	return interceptor.New(set)
}

var _ = packageComment

const retryFile = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    timeout: 2s
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 2s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: orders}
budgets:
  - name: orders
    bucket: {size: 50, perSuccess: 0.1}
`

// writeRetryFile writes retryFile to retry.yaml in a temporary folder.
func writeRetryFile() (path string, remove func()) {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(folder, "retry.yaml")
	if err := os.WriteFile(path, []byte(retryFile), 0o600); err != nil {
		panic(err)
	}
	return path, func() { _ = os.RemoveAll(folder) }
}

// Two Retriers follow one file.
func ExampleFollow() {
	follow := func(ctx context.Context, path string) (users, batches *interceptor.Retrier, err error) {
		set, err := policy.Load(path)
		if err != nil {
			return nil, nil, err
		}
		if users, err = interceptor.New(set); err != nil {
			return nil, nil, err
		}
		if batches, err = interceptor.New(set, interceptor.WithDefaultTimeout(time.Minute)); err != nil {
			return nil, nil, err
		}
		policy.Follow(ctx, path, set, func(set *policy.Set, err error) {
			if err == nil {
				err = errors.Join(users.Reload(set), batches.Reload(set))
			}
			if err != nil {
				log.Print(err) // the previous policies apply
			}
		})
		return users, batches, nil
	}
	path, remove := writeRetryFile()
	defer remove()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_, _, err := follow(ctx, path)
	fmt.Println(err)
	// Output: <nil>
}

// Parse reports all errors in a file at once, with their place and the remedy.
func ExampleParse() {
	_, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy:
      maxAttempts: 1
      initialBackoff: 50ms
      maxBackoff: 2s
      backoffMultiplier: 2
      retryableStatusCode: [UNAVAILABLE]
`))
	fmt.Println(err)
	// Output:
	// retry.yaml:5:20: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2, since it counts the first attempt; for one attempt leave the policy out
	// retry.yaml:6:23: methodConfig[0].retryPolicy.initialBackoff: 50ms: must be in seconds: "0.05s"
	// retry.yaml:9:7: methodConfig[0].retryPolicy.retryableStatusCode: unknown key; did you mean retryableStatusCodes?
}

func ExampleLoad() {
	path, remove := writeRetryFile()
	defer remove()
	set, err := policy.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, method := range []string{"/acme.orders.v1.OrderService/GetOrder", "/acme.orders.v1.OrderService/PutOrder"} {
		if p := set.Lookup(method); p != nil {
			fmt.Println(method, p.MaxAttempts(), p.Budget())
		} else {
			fmt.Println(method, "has no policy")
		}
	}
	// Output:
	// /acme.orders.v1.OrderService/GetOrder 4 orders
	// /acme.orders.v1.OrderService/PutOrder has no policy
}

// A switch by hand and the policy file may both have a mode.
func ExampleStrictestMode() {
	fmt.Println(policy.StrictestMode(policy.ModeEnforce, policy.ModeObserve))
	// Output: OBSERVE
}
