// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/interceptor"
)

// responseError is the error of a response whose code isn't 200.
type responseError struct {
	code       int
	retryAfter time.Duration
}

func (e *responseError) Error() string { return "HTTP " + strconv.Itoa(e.code) }

// statusOfHTTP says which errors of an HTTP client the policy may retry: 503 and 429, and connections that fail. The end of the call's or the
// attempt's context is neither.
func statusOfHTTP(err error) *status.Status {
	response, ok := errors.AsType[*responseError](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err)
	case !ok:
		return status.New(codes.Unavailable, err.Error())
	case response.code != http.StatusServiceUnavailable && response.code != http.StatusTooManyRequests:
		return status.New(codes.Unknown, err.Error())
	}
	st := status.New(codes.Unavailable, err.Error())
	if response.retryAfter == 0 {
		return st
	}
	delayed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(response.retryAfter)})
	if err != nil {
		return st
	}
	return delayed
}

// request sends one HTTP request.
func request(ctx context.Context, client *http.Client, url string) error {
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	attempt, _ := interceptor.AttemptFromContext(ctx)
	sent.Header.Set("X-Attempt", strconv.Itoa(attempt))
	if md, ok := metadata.FromOutgoingContext(ctx); ok { // the idempotency key, if the call has one
		for _, key := range md.Get("idempotency-key") {
			sent.Header.Set("Idempotency-Key", key)
		}
	}
	response, err := client.Do(sent)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return &responseError{response.StatusCode, time.Duration(seconds) * time.Second}
	}
	return nil
}

// An HTTP request under a policy. The server refuses the first attempt, and asks for the next one in a second.
func ExampleRetrier_Do() {
	var refused time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("attempt", r.Header.Get("X-Attempt"))
		if refused.IsZero() {
			refused = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Println("a second later:", time.Since(refused) >= time.Second)
	}))
	defer server.Close()

	const getStock = "/acme.stock.v1.StockService/GetStock" // the name of the request, for policy, logs and metrics
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{getStock}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = retrier.Do(ctx, getStock, func(ctx context.Context) error { return request(ctx, server.Client(), server.URL) },
		interceptor.StatusOf(statusOfHTTP), interceptor.Target("stock"))
	fmt.Println(err)
	// Output:
	// attempt 1
	// attempt 2
	// a second later: true
	// <nil>
}
