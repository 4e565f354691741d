// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
)

// The package comment shows it.
func packageComment(ctx context.Context) (*interceptor.Retrier, error) {
	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithObserver(observe.Slog(slog.Default())))
	return retrier, err
}

var _ = packageComment

func ExampleSlog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	set, err := policy.Parse("retry.yaml", []byte("budgets: [{name: spare, bucket: {}}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := interceptor.New(set, interceptor.WithObserver(observe.Slog(logger))); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=WARN msg="stagger: policy warning" warning="retry.yaml:1:18: budgets[0].name: spare: no policy names this budget"
}

func ExampleLog() {
	// Any logger in the shape of go-grpc-middleware's.
	logger := logging.LoggerFunc(func(_ context.Context, level logging.Level, msg string, _ ...any) {
		if level >= logging.LevelWarn {
			fmt.Println("warning:", msg)
		}
	})
	set, err := policy.Parse("retry.yaml", []byte("budgets: [{name: spare, bucket: {}}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := interceptor.New(set, interceptor.WithObserver(observe.Log(logger))); err != nil {
		fmt.Println(err)
	}
	// Output: warning: stagger: policy warning
}

// Each retry has a line of its own, also those that follow the first one within ten seconds.
func ExampleEveryRetry() {
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{},
		interceptor.WithObserver(observe.Slog(slog.New(slog.DiscardHandler), observe.EveryRetry())))
	fmt.Println(retrier != nil, err)
	// Output: true <nil>
}
