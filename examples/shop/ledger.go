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

// ledger is the file of all payments, each with its idempotency key. It is written before the response is sent, so that a
// process that is killed and restarted makes no payment twice. A database has transactions for that, and a unique index over
// the key for several processes: see examples/payments.
type ledger struct {
	mu   sync.Mutex
	file *os.File
	made map[string]bool
}

// openLedger opens the ledger, and reads the payments by earlier processes.
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

// pay makes the payment of the call's key, unless it was made already.
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

// payments counts the requests with one key, and their payments.
type payments struct{ requests, made int }

// readLedger returns the counts of each key in a ledger.
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
