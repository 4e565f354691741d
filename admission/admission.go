// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission refuses calls at the client if the service could not respond in time. To use it, import it:
//
//	import _ "github.com/stagger-go/stagger/admission"
//
// Then turn it on in the policy file, for the methods of an entry:
//
//	methodConfig:
//	  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
//	    timeout: 1s
//	    admission: REFUSE
//
// In an overload, requests wait in a queue longer than their callers wait for a response, and the service works on requests of callers that
// have left. Refusing a call before it is sent costs nothing, and lets the service respond to the others in time. The client estimates
// whether the service can still respond in time: from the times of the last responses, the rate of responses, the number of its running
// attempts, and missed deadlines. A refused call ends with RESOURCE_EXHAUSTED and the reason overloaded (policy.ReasonOverloaded).
//
// The package has no settings, and serves all Retriers of the program. Without the import, a Retrier refuses a file with admission REFUSE.
// interceptor.Retrier.State shows the current state. docs/overload.md#shed-load-in-the-client has the rule, its limits, and when to turn it on.
package admission

import "github.com/stagger-go/stagger/internal/hooks/admitting"

func init() { admitting.Register(newGate) }

// newGate returns a gate without observations, which admits all calls.
func newGate() admitting.Gate { return new(gate) }
