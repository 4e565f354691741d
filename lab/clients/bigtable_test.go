// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/testkit"
)

const (
	readRows  = "/google.bigtable.v2.Bigtable/ReadRows"
	increment = "/google.bigtable.v2.Bigtable/ReadModifyWriteRow"
)

func serveBigtable(t *testing.T) string {
	t.Helper()
	server := testkit.Must(bttest.NewServer("127.0.0.1:0"))(t)
	t.Cleanup(server.Close)
	admin := testkit.Must(bigtable.NewAdminClient(t.Context(), "lab", "lab", google(server.Addr, []grpc.DialOption{plaintext})...))(t)
	defer admin.Close()
	testkit.NoError(t, admin.CreateTable(t.Context(), "orders"))
	testkit.NoError(t, admin.CreateColumnFamily(t.Context(), "orders", "f"))
	return server.Addr
}

func dialBigtable(t *testing.T, target string, dial ...grpc.DialOption) *bigtable.Client {
	t.Helper()
	c := testkit.Must(bigtable.NewClientWithConfig(t.Context(), "lab", "lab", bigtable.ClientConfig{
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
		name: "Bigtable", module: "cloud.google.com/go/bigtable", read: readRows, write: increment, headers: true, tries: 4,
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
