// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
)

const (
	readRows   = "/google.bigtable.v2.Bigtable/ReadRows"
	mutateRows = "/google.bigtable.v2.Bigtable/MutateRows"
	increment  = "/google.bigtable.v2.Bigtable/ReadModifyWriteRow"
)

func serveBigtable(t *testing.T) string {
	t.Helper()
	server := must.Get(bttest.NewServer("127.0.0.1:0"))(t)
	t.Cleanup(server.Close)
	admin := must.Get(bigtable.NewAdminClient(t.Context(), "lab", "lab", google(server.Addr, []grpc.DialOption{plaintext})...))(t)
	defer admin.Close()
	must.Do(t, admin.CreateTable(t.Context(), "orders"))
	must.Do(t, admin.CreateColumnFamily(t.Context(), "orders", "f"))
	return server.Addr
}

func dialBigtable(t *testing.T, target string, dial ...grpc.DialOption) *bigtable.Client {
	t.Helper()
	c := must.Get(bigtable.NewClientWithConfig(t.Context(), "lab", "lab", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{}, DisableDirectAccess: true, DisableSession: true,
	}, google(target, dial)...))(t)
	return c
}

// put sets one cell.
func put(value []byte) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("f", "c", 1000, value)
	return m
}

func TestBigtable(t *testing.T) {
	library{
		name: "Bigtable", module: "cloud.google.com/go/bigtable", read: readRows, write: increment, headers: true, rebuilds: true, tries: 4,
		serve: serveBigtable,
		open: func(t *testing.T, target string, _ bool, dial ...grpc.DialOption) session {
			c := dialBigtable(t, target, dial...)
			orders := c.Open("orders")
			add := func(ctx context.Context) (bigtable.Row, error) {
				rmw := bigtable.NewReadModifyWrite()
				rmw.Increment("f", "n", 1)
				return orders.ApplyReadModifyWrite(ctx, "counter", rmw)
			}
			return session{
				happy: func(ctx context.Context) ([]string, error) { return useBigtable(ctx, orders) },
				read: func(ctx context.Context) error {
					_, err := orders.ReadRow(ctx, "a")
					return err
				},
				write: func(ctx context.Context) error {
					_, err := add(ctx)
					return err
				},
				close: func() { c.Close() },
			}
		},
	}.test(t)
}

// useBigtable writes rows in bulk and reads them.
func useBigtable(ctx context.Context, orders *bigtable.Table) (results []string, err error) {
	failed, err := orders.ApplyBulk(ctx, []string{"a", "b"}, []*bigtable.Mutation{put([]byte("1")), put([]byte("2"))})
	if err != nil || failed != nil {
		return nil, fmt.Errorf("%w, %v", err, failed)
	}
	err = orders.ReadRows(ctx, bigtable.InfiniteRange("a"), func(row bigtable.Row) bool {
		for _, item := range row["f"] {
			results = append(results, fmt.Sprint(row.Key(), " ", item.Column, " ", string(item.Value)))
		}
		return row.Key() < "b"
	})
	return results, err
}

// TestBigtable_LargeWrite keeps at most 256 KiB of a stream's request for replay: stagger doesn't retry a larger one, only
// the library does.
func TestBigtable_LargeWrite(t *testing.T) {
	noLeaks(t)
	f := newFront(t, serveBigtable(t))
	commits := make(chan string, 100)
	r := retrier(t, "methodConfig:\n  - {name: [{service: google.bigtable.v2.Bigtable, method: MutateRows}], "+retryPolicy+"}\n",
		interceptor.WithObserver(interceptor.Observer{Call: func(_ context.Context, e interceptor.Event) {
			if err, ok := errors.AsType[*interceptor.Error](e.Err); ok && e.Method == mutateRows {
				commits <- err.Commit
			}
		}}))
	c := dialBigtable(t, f.target, append(r.DialOptions(), plaintext)...)
	defer c.Close()
	write := func(size int) (requests int, commit string) {
		before, _ := f.requests(mutateRows)
		f.fail(mutateRows, codes.Unavailable)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.Open("orders").ApplyBulk(ctx, []string{"a"}, []*bigtable.Mutation{put(bytes.Repeat([]byte{'v'}, size))}) // cancelled
		}()
		commit = <-commits
		after, _ := f.requests(mutateRows)
		cancel()
		<-done
		for len(commits) > 0 {
			<-commits // the library retries
		}
		return after - before, commit
	}
	if n, commit := write(1 << 10); n < 2 || commit == "buffer_full" {
		t.Errorf("1 KiB: %d requests, committed by %q", n, commit)
	}
	if _, commit := write(300 << 10); commit != "buffer_full" {
		t.Errorf("300 KiB: committed by %q", commit)
	}
}
