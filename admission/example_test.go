// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"
	"log"

	_ "github.com/stagger-go/stagger/admission"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// The import lets a policy file turn admission on. State has a reading for each method that was called.
func Example() {
	set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    timeout: 1s
    admission: REFUSE
`))
	if err != nil {
		log.Fatal(err)
	}
	retrier, err := interceptor.New(set) // without the import, the error says what to import
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(retrier.State().Admission), "methods were called")
	// Output: 0 methods were called
}
