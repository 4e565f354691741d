// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

func ExampleWithDescriptors() {
	set, err := policy.NewSet(policy.Config{}) // no policy but what the API brings along
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set, interceptor.WithDescriptors("../policy/testdata/descriptors/parcels.binpb"))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, end := dial(2, retrier.DialOptions()...)
	defer end()
	err = conn.Invoke(context.Background(), "/acme.parcels.v1.ParcelService/GetParcel", &emptypb.Empty{}, &emptypb.Empty{})
	fmt.Println("GetParcel has a policy:", status.Code(err))
	err = conn.Invoke(context.Background(), "/acme.parcels.v1.ParcelService/SendParcel", &emptypb.Empty{}, &emptypb.Empty{})
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println("SendParcel has its service's:", status.Code(err), e.Reason)
	}
	// Output:
	// GetParcel has a policy: OK
	// SendParcel has its service's: Unavailable not_idempotent
}
