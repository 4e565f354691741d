// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package orders is the example that stagger's documentation, demo and tests share: the retry policy
// of a client of an order service. A program of your own loads its file with interceptor.Load.
package orders

import _ "embed" // for the policy file

// Policy is the file retry.yaml. It is not to be changed.
//
//go:embed retry.yaml
var Policy []byte

// File is the name of the policy file, for messages about it.
const File = "retry.yaml"

// The methods of the service that the policy speaks of. It declares the first two safe to repeat;
// nobody has declared CreateOrder safe.
const (
	GetOrder    = "/acme.orders.v1.OrderService/GetOrder"
	ListOrders  = "/acme.orders.v1.OrderService/ListOrders"
	CreateOrder = "/acme.orders.v1.OrderService/CreateOrder"
)
