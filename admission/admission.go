// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission refuses calls at the client that no server would answer in time. A program imports it:
//
//	import _ "github.com/stagger-go/stagger/admission"
//
// Then the policy file turns it on, for the methods of an entry:
//
//	methodConfig:
//	  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
//	    timeout: 1s
//	    admission: REFUSE
//
// In an overload, requests wait in a queue longer than their callers do, and the service works on requests of callers that have
// left. Refusing a call before it is sent costs nothing, and lets the service answer the others in time. Whether a service can
// still answer a call in time is decided by what the client observes: how long the last responses took, the rate of responses,
// how many of its attempts run, and missed deadlines. A refused call ends with RESOURCE_EXHAUSTED and the reason overloaded
// (policy.ReasonOverloaded).
//
// The package has no settings, and serves all Retriers of the program. A Retrier of a program that does not import it refuses a file with
// admission REFUSE. interceptor.Retrier.State has readings. docs/overload.md has the rule, its limits, and when to turn it on.
package admission

import "github.com/stagger-go/stagger/internal/hooks/admitting"

func init() { admitting.Register(newGate) }

// newGate returns a gate without observations, which admits all calls.
func newGate() admitting.Gate { return new(gate) }
