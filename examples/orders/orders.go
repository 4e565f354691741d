// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package orders is the example in stagger's documentation and tests: the retry policy of a client of an order
// service. Your own program loads its file with interceptor.Load.
package orders

import _ "embed" // for the policy file

// Policy is the file retry.yaml. Don't modify it.
//
//go:embed retry.yaml
var Policy []byte

// File is the name of the policy file, for messages about it.
const File = "retry.yaml"

// The methods of the service. The policy declares the first two idempotent; CreateOrder isn't declared idempotent.
const (
	GetOrder    = "/acme.orders.v1.OrderService/GetOrder"
	ListOrders  = "/acme.orders.v1.OrderService/ListOrders"
	CreateOrder = "/acme.orders.v1.OrderService/CreateOrder"
)
