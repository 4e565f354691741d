// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

const getOrder = "/acme.orders.v1.OrderService/GetOrder"

// retryFile is a policy file. Naming a method says that it may run twice.
const retryFile = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    timeout: 2s
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.1s
      maxBackoff: 2s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE]
`

// writeRetryFile writes retryFile to retry.yaml in a temporary folder.
func writeRetryFile() (path string, remove func()) {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(folder, "retry.yaml")
	if err := os.WriteFile(path, []byte(retryFile), 0o600); err != nil {
		panic(err)
	}
	return path, func() { _ = os.RemoveAll(folder) }
}

func ExampleLoad() {
	path, remove := writeRetryFile()
	defer remove()

	retrier, err := interceptor.Load(path)
	if err != nil {
		panic(err) // it has every error in the file, each with line, column and what would be right
	}
	fmt.Println(retrier.State().Policies.Lookup(getOrder).MaxAttempts(), "attempts")
	// Output: 4 attempts
}

// A change of the file applies while the program runs.
func ExampleWatch() {
	path, remove := writeRetryFile()
	defer remove()

	ctx, stop := context.WithCancel(context.Background())
	defer stop() // the file is followed until then
	retrier, err := interceptor.Watch(ctx, path)
	if err != nil {
		panic(err)
	}
	defer retrier.Close()

	state := retrier.State() // its Err says why the file, as it is now, was refused
	fmt.Println(filepath.Base(state.Policies.Source()), state.Err)
	// Output: retry.yaml <nil>
}

// A program may have its policies as text.
func ExampleNew() {
	set, err := policy.Parse("retry.yaml", []byte(retryFile))
	if err != nil {
		panic(err)
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient("dns:///orders.example.com:443",
		append(retrier.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	fmt.Println(retrier.State().Policies.Lookup(getOrder).MaxAttempts(), "attempts")
	// Output: 4 attempts
}

// A program gets its policies from a configuration service.
func ExampleRetrier_Reload() {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getOrder}})
	if err != nil {
		panic(err)
	}
	set, err := policy.Parse("from the configuration service", []byte(`{}`)) // no policies: nothing is retried
	if err != nil {
		panic(err)
	}
	if err := retrier.Reload(set); err != nil {
		panic(err)
	}
	err = retrier.Do(context.Background(), getOrder, func(context.Context) error {
		fmt.Println("attempt")
		return status.Error(codes.Unavailable, "restarting")
	})
	fmt.Println(err)
	// Output:
	// attempt
	// rpc error: code = Unavailable desc = restarting
}

// A proxy has no generated code of the services behind it. Their descriptors say which methods may run twice.
func ExampleWithDescriptors() {
	var api descriptorpb.FileDescriptorSet // what "buf build -o api.binpb" writes: proto.Unmarshal reads it
	err := prototext.Unmarshal([]byte(`
file {
  name: "orders.proto"  package: "acme.orders.v1"
  message_type {name: "Order"}
  service {
    name: "OrderService"
    method {
      name: "GetOrder"  input_type: "Order"  output_type: "Order"  options {idempotency_level: NO_SIDE_EFFECTS}
    }
    method {name: "CreateOrder"  input_type: "Order"  output_type: "Order"}
  }
}`), &api)
	if err != nil {
		panic(err)
	}
	files, err := protodesc.NewFiles(&api)
	if err != nil {
		panic(err)
	}
	soon := policy.RetryPolicy{InitialBackoff: time.Millisecond}
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{RetryPolicy: soon},
		interceptor.WithDescriptors(files), interceptor.WithDefaultTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	for _, method := range []string{getOrder, "/acme.orders.v1.OrderService/CreateOrder"} {
		attempts := 0
		_ = retrier.Do(context.Background(), method, func(context.Context) error {
			attempts++
			return status.Error(codes.Unavailable, "restarting")
		})
		fmt.Println(method, attempts)
	}
	// Output:
	// /acme.orders.v1.OrderService/GetOrder 3
	// /acme.orders.v1.OrderService/CreateOrder 1
}
