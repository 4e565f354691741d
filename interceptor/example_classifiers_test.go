// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const getResult = "/acme.jobs.v1.JobService/GetResult"

// resultOf gets the result of a job from a server whose attempts go by the script.
func resultOf(classifier interceptor.Option, script ...testserver.Step) (result string, err error) {
	server, err := testserver.New()
	if err != nil {
		return "", err
	}
	defer server.Close()
	server.On(getResult, script...)
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent: []string{getResult},
		RetryPolicy: policy.RetryPolicy{
			InitialBackoff: time.Millisecond, RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.ResourceExhausted},
		},
	}, classifier)
	if err != nil {
		return "", err
	}
	conn, err := grpc.NewClient(server.Target(), append(retrier.DialOptions(), server.DialOptions()...)...)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	reply := new(wrapperspb.StringValue)
	err = conn.Invoke(ctx, getResult, &emptypb.Empty{}, reply)
	return fmt.Sprintf("%q after %d attempts", reply.GetValue(), server.Count(getResult)), err
}

// A reply may mean "not yet". Then the call is made again, under the same policy and budget.
func ExampleWithClassifier() {
	notYet := func(_ context.Context, _ string, reply any, err error) interceptor.Verdict {
		if result, ok := reply.(*wrapperspb.StringValue); ok && err == nil && result.GetValue() == "" {
			return interceptor.VerdictNotYet
		}
		return interceptor.VerdictByCode
	}
	fmt.Println(resultOf(interceptor.WithClassifier(notYet),
		testserver.OK(wrapperspb.String("")).Times(2), testserver.OK(wrapperspb.String("42"))))
	// Output: "42" after 3 attempts <nil>
}

// A server says INTERNAL while it is restarting.
func ExampleVerdict() {
	restarting := func(_ context.Context, _ string, _ any, err error) interceptor.Verdict {
		if s := status.Convert(err); s.Code() == codes.Internal && s.Message() == "restarting" {
			return interceptor.VerdictRetry
		}
		return interceptor.VerdictByCode
	}
	fmt.Println(resultOf(interceptor.WithClassifier(restarting),
		testserver.Fail(codes.Internal, "restarting"), testserver.OK(wrapperspb.String("42"))))
	// Output: "42" after 2 attempts <nil>
}

// A server names its delay in a header of its own, in seconds. It is longer than the policy allows, so no other attempt follows, and the error
// says how long to wait before the next call.
func ExampleTrailerFromContext() {
	limited := interceptor.WithClassifier(func(ctx context.Context, _ string, _ any, _ error) (v interceptor.Verdict) {
		reset := interceptor.TrailerFromContext(ctx)["x-ratelimit-reset"]
		if seconds, err := strconv.Atoi(strings.Join(reset, "")); err == nil {
			v.Delay = time.Duration(seconds) * time.Second // the policy still decides by the code whether to retry
		}
		return v
	})
	_, err := resultOf(limited,
		testserver.Fail(codes.ResourceExhausted).Trailer(metadata.Pairs("x-ratelimit-reset", "3600")), testserver.OK(wrapperspb.String("42")))
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		fmt.Println(status.Code(err), e.Reason, "after an hour:", e.RetryAfter >= time.Hour)
	}
	// Output: ResourceExhausted pushback_stop after an hour: true
}
