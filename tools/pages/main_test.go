// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package pages_test compares pages, keys, names and workflows with the code: in the repository's root, whose files it names.
package pages_test

import (
	"log"
	"os"
	"testing"
)

// getOrder is the method of most examples.
const getOrder = "/acme.orders.v1.OrderService/GetOrder"

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
