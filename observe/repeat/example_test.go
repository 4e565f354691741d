// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package repeat_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/repeat"
	"github.com/stagger-go/stagger/policy"
)

// A time may differ, and a report fails the test.
func ExampleForTests() {
	ignore := func(_ string, reply proto.Message) {
		if order, ok := reply.(*structpb.Struct); ok {
			delete(order.GetFields(), "served_at")
		}
	}
	set, err := policy.Parse("retry.yaml", []byte("{}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set, repeat.ForTests(ignore), interceptor.WithObserver(interceptor.Observer{
		Diagnostic: func(d policy.Diagnostic) { fmt.Println(d.Severity, d) }, // t.Error, if d.Field is "repeat"
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier.Close()
	// Output:
	// warning repeat.ForTests: calls of methods that are declared idempotent are sent twice, and no budget pays: this is for tests and staging
	// note repeat.ForTests: 0 second calls were as the first, 0 differed, 0 got no response, and 0 not made, because 16 ran
}
