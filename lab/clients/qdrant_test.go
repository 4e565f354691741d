// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/testserver"
)

func TestQdrant(t *testing.T) {
	library{
		name: "qdrant go-client", module: "github.com/qdrant/go-client", tame: true, tries: 1,
		read: qdrant.Points_Get_FullMethodName, write: qdrant.Points_Upsert_FullMethodName,
		serve: func(t *testing.T) string {
			server := testserver.Start(t, testserver.Listener(must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)))
			server.On(qdrant.Points_Get_FullMethodName, testserver.OK(&qdrant.GetResponse{Result: []*qdrant.RetrievedPoint{{Id: qdrant.NewIDNum(7)}}}))
			server.On(qdrant.Points_Upsert_FullMethodName, testserver.OK(&qdrant.PointsOperationResponse{Result: &qdrant.UpdateResult{
				Status: qdrant.UpdateStatus_Completed,
			}}))
			return server.Target()
		},
		open: func(t *testing.T, target string, _ bool, dial ...grpc.DialOption) session {
			host, port, err := net.SplitHostPort(target)
			if err != nil {
				t.Fatal(err)
			}
			number := must.Get(strconv.Atoi(port))(t)
			c := must.Get(qdrant.NewClient(&qdrant.Config{Host: host, Port: number, GrpcOptions: dial, SkipCompatibilityCheck: true}))(t)
			get := func(ctx context.Context) ([]*qdrant.RetrievedPoint, error) {
				return c.Get(ctx, &qdrant.GetPoints{CollectionName: "orders", Ids: []*qdrant.PointId{qdrant.NewIDNum(7)}})
			}
			upsert := func(ctx context.Context) (*qdrant.UpdateResult, error) {
				return c.Upsert(ctx, &qdrant.UpsertPoints{CollectionName: "orders", Points: []*qdrant.PointStruct{
					{Id: qdrant.NewIDNum(7), Vectors: qdrant.NewVectors(1, 2)},
				}})
			}
			return session{
				happy: func(ctx context.Context) ([]string, error) {
					updated, err := upsert(ctx)
					if err != nil {
						return nil, err
					}
					points, err := get(ctx)
					return []string{updated.GetStatus().String(), fmt.Sprint(points[0].GetId().GetNum())}, err
				},
				read: func(ctx context.Context) error {
					_, err := get(ctx)
					return err
				},
				write: func(ctx context.Context) error {
					_, err := upsert(ctx)
					return err
				},
				close: func() { c.Close() },
			}
		},
	}.test(t)
}
