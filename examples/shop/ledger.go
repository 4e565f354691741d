// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	keyHeader = "idempotency-key"
	paid      = "paid"
	asked     = "asked again"
)

// ledger is the file of the payments that were made, each under its idempotency key. What it says is written before it is
// answered, so that a process that is killed and started anew makes no payment twice. A database has a transaction for that,
// and a unique index over the key for several processes: examples/payments says what else money needs.
type ledger struct {
	mu   sync.Mutex
	file *os.File
	made map[string]bool
}

// openLedger opens the ledger, and reads what was paid by processes before this one.
func openLedger(path string) (*ledger, error) {
	requests, err := readLedger(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	l := &ledger{file: file, made: map[string]bool{}}
	for key := range requests {
		l.made[key] = true
	}
	return l, nil
}

// pay makes the payment of the call's key, unless it has been made.
func (l *ledger) pay(ctx context.Context) (string, error) {
	keys := metadata.ValueFromIncomingContext(ctx, keyHeader)
	if len(keys) != 1 || keys[0] == "" || strings.ContainsAny(keys[0], "\t\n") {
		return "", status.Errorf(codes.InvalidArgument, "%s is %q: want one key", keyHeader, keys)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := paid
	if l.made[keys[0]] {
		entry = asked
	}
	if _, err := fmt.Fprintf(l.file, "%s\t%s\n", keys[0], entry); err != nil {
		return "", status.Errorf(codes.Internal, "the ledger: %v", err)
	}
	if err := l.file.Sync(); err != nil {
		return "", status.Errorf(codes.Internal, "the ledger: %v", err)
	}
	l.made[keys[0]] = true
	return entry, nil
}

// payments are the requests of one key: how many there were, and how many payments they made.
type payments struct{ requests, made int }

// readLedger reads what a ledger says of each key.
func readLedger(path string) (map[string]payments, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	keys := map[string]payments{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, entry, _ := strings.Cut(lines.Text(), "\t")
		p := keys[key]
		p.requests++
		if entry == paid {
			p.made++
		}
		keys[key] = p
	}
	return keys, lines.Err()
}
