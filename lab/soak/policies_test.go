// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Methods: all but create are declared idempotent by name.
const (
	service = "soak.v1.OrderService"
	get     = "/" + service + "/GetOrder"
	watch   = "/" + service + "/WatchOrders"
	load    = "/" + service + "/ImportOrders"
	chat    = "/" + service + "/Chat"
	create  = "/" + service + "/CreateOrder"
)

const backoff = "initialBackoff: 0.005s, maxBackoff: 0.05s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, ABORTED]"

// entries are policies of every kind; %s is a budget.
var entries = []string{
	"retryPolicy: {maxAttempts: 4, budget: %s, " + backoff + "}",
	"retryPolicy: {maxAttempts: 4, budget: %s, commitOn: HEADERS, jitter: DECORRELATED, " + backoff + "}",
	"retryPolicy: {maxAttempts: 5, budget: %s, perAttemptTimeout: 0.05s, onAttemptTimeout: HEDGE, " + backoff + "}",
	"retryPolicy: {maxAttempts: 3, budget: %s, perAttemptTimeout: 0.05s, onAttemptTimeout: RETRY, jitter: EQUAL, " + backoff + "}",
	"timeout: 0.3s, retryPolicy: {maxAttempts: 4, budget: %s, waitForReadyOnRetry: true, growth: LINEAR, " + backoff + "}",
	"idempotencyKey: {header: x-key}, retryPolicy: {maxAttempts: 4, budget: %s, " + backoff + "}",
	"admission: REFUSE, retryPolicy: {maxAttempts: 4, budget: %s, perAttemptTimeout: 0.05s, " + backoff + "}",
	"mode: OBSERVE, retryPolicy: {maxAttempts: 4, budget: %s, " + backoff + "}",
	"percent: 50, retryPolicy: {maxAttempts: 4, budget: %s, " + backoff + "}",
	"hedgingPolicy: {maxAttempts: 3, budget: %s, hedgingDelay: 0.02s, nonFatalStatusCodes: [UNAVAILABLE, ABORTED]}",
	"hedgingPolicy: {maxAttempts: 3, budget: %s, hedgingDelay: 0s, nonFatalStatusCodes: [UNAVAILABLE]}",
	"hedgingPolicy: {maxAttempts: 3, budget: %s, hedgingDelay: 0.02s, nonFatalStatusCodes: [UNAVAILABLE], hedgingQuantile: {quantile: 0.9, min: 0.005s, max: 0.1s}}",
}

// budgetNames are the budgets in policies; ledger is the soak's own, which replaces the file's.
var budgetNames = []string{"ledger", "ratio", "throttle", "concurrent", "refund", "NONE"}

const budgets = `
maxWaiting: 50
budgets:
  - {name: ledger, ratio: {percent: 50}}
  - {name: ratio, ratio: {percent: %d, minPerSecond: 5, window: 2s}}
  - {name: throttle, scope: SERVICE, throttle: {maxTokens: 100, tokenRatio: 0.5}}
  - {name: concurrent, scope: PROCESS, concurrent: {percent: %d, min: 3}}
  - {name: refund, refund: {capacity: 100}}
`

// document returns a random policy file.
func (c *chance) document() string {
	var b strings.Builder
	switch n := c.float(); {
	case n < 0.1:
		b.WriteString("mode: OFF\n")
	case n < 0.2:
		b.WriteString("mode: OBSERVE\n")
	case n < 0.4:
		b.WriteString("transparentRetry: DENY\n")
	}
	fmt.Fprintf(&b, budgets, 20+int(c.float()*60), 20+int(c.float()*60))
	b.WriteString("methodConfig:\n")
	for _, method := range []string{get, watch, load, chat} {
		name := method[strings.LastIndexByte(method, '/')+1:]
		entry := fmt.Sprintf(pick(c, entries), pick(c, budgetNames))
		fmt.Fprintf(&b, "  - {name: [{service: %s, method: %s}], %s}\n", service, name, entry)
	}
	entry := fmt.Sprintf(pick(c, []string{entries[0], entries[2], entries[9]}), pick(c, budgetNames))
	fmt.Fprintf(&b, "  - {name: [{service: %s}], %s}\n", service, entry)
	return b.String()
}

// replaceFile replaces the text of a file, like a deployment.
func replaceFile(path, text string) error {
	fresh := filepath.Join(filepath.Dir(path), "..fresh")
	if err := os.WriteFile(fresh, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
