// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
)

// An entry declares its own methods, and lends neither its declaration nor its key to the call of another one. The method's own entry
// keeps both.
func TestPolicy_Borrowed(t *testing.T) {
	const (
		retry    = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}`
		entry    = "methodConfig:\n- name: [{service: acme.orders.v1.OrderService%s}]\n  %s\n" // of a method, and its settings
		another  = "- name: [{service: acme.orders.v1.OrderService%s}]\n  %s\n"
		ofGet    = ", method: GetOrder"
		ofCreate = ", method: CreateOrder"
		key      = "idempotencyKey: {header: x-order-key}\n  " + retry
		declared = "idempotency: ASSUME\n  " + retry
		never    = "idempotency: NONE\n  " + retry
	)
	mine := interceptor.IdempotencyKey("mine")
	for name, row := range map[string]struct {
		file     string // of the Retrier
		lender   string // of the borrowed policy; "": the Retrier's
		of       string // the method for which it is looked up
		opts     []grpc.CallOption
		attempts int
		header   string // in which the server got a key
	}{
		"an entry that names another method":            {file: fmt.Sprintf(entry, ofGet, retry), of: get, attempts: 1},
		"so does one of another file":                   {file: fmt.Sprintf(entry, "", retry), lender: fmt.Sprintf(entry, ofGet, retry), of: get, attempts: 1},
		"an entry that says ASSUME":                     {file: fmt.Sprintf(entry, ofGet, declared), of: get, attempts: 1},
		"a whole file that says ASSUME":                 {file: "methodConfig: []", lender: "idempotency: ASSUME\n" + fmt.Sprintf(entry, ofGet, retry), of: get, attempts: 1},
		"an entry of the service, and the method's own": {file: fmt.Sprintf(entry, "", declared) + fmt.Sprintf(another, ofCreate, never), of: get, attempts: 1},
		"an entry with a key":                           {file: fmt.Sprintf(entry, ofGet, key), of: get, attempts: 1},
		"an entry with a key, and the caller's own key": {file: fmt.Sprintf(entry, ofGet, key), of: get, opts: []grpc.CallOption{mine}, attempts: 4, header: "idempotency-key"},
		"the caller's own key, and the method's NONE": {
			file: fmt.Sprintf(entry, ofGet, key) + fmt.Sprintf(another, ofCreate, never), of: get,
			opts: []grpc.CallOption{mine}, attempts: 1, header: "idempotency-key",
		},
		"the caller declares it": {file: fmt.Sprintf(entry, ofGet, retry), of: get, opts: []grpc.CallOption{interceptor.Idempotent()}, attempts: 4},

		"the method's own entry declares it":    {file: fmt.Sprintf(entry, ofGet, never) + fmt.Sprintf(another, ofCreate, retry), of: get, attempts: 4},
		"the method's own entry has a key":      {file: fmt.Sprintf(entry, ofGet, retry) + fmt.Sprintf(another, ofCreate, key), of: get, attempts: 4, header: "x-order-key"},
		"an entry for the service says ASSUME":  {file: fmt.Sprintf(entry, "", declared), of: get, attempts: 4},
		"another file's entry for the method":   {file: fmt.Sprintf(entry, "", retry), lender: fmt.Sprintf(entry, ofCreate, retry), of: create, attempts: 4},
		"another file's entry with a key":       {file: fmt.Sprintf(entry, "", retry), lender: fmt.Sprintf(entry, ofCreate, key), of: create, attempts: 4, header: "x-order-key"},
		"another file's entry for its service":  {file: "methodConfig: []", lender: fmt.Sprintf(entry, "", declared), of: get, attempts: 4},
		"another file's entry for every method": {file: "methodConfig: []", lender: "methodConfig:\n- name: [{}]\n  " + declared + "\n", of: "/a.B/C", attempts: 4},
	} {
		for kind, desc := range callKinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, config(plain()), func(t *testing.T, s scene) {
					own := mustParse(t, row.file)
					testkit.NoError(t, s.retrier.Reload(own))
					lender := own
					if row.lender != "" {
						lender = mustParse(t, row.lender)
					}
					s.On(create, down().Times(3), text("made"))
					opts := append(slices.Clone(row.opts), interceptor.Policy(lender.Lookup(row.of)))
					err := exchange(t.Context(), s.conn, desc, create, opts...)
					if got := s.Count(create); got != row.attempts || (err == nil) != (row.attempts == 4) {
						t.Errorf("%d attempts, %v; want %d", got, err, row.attempts)
					}
					for _, header := range []string{"idempotency-key", "x-order-key"} {
						if sent := s.Attempts()[0].Metadata.Get(header); (len(sent) > 0) != (header == row.header) {
							t.Errorf("%s: %v; want a key in %q", header, sent, row.header)
						}
					}
				})
			})
		}
	}
}
