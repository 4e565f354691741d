// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// With the README's own policy file, calls succeed while one of three backends fails. Without the file's load balancing, gRPC sends all calls
// and their retries to one backend, and none succeeds.
func TestReadmePolicy_OneOfThreeFails(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(string(testkit.Must(os.ReadFile("../../README.md"))(t)), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	const method = "/acme.orders.v1.OrderService/GetOrder"
	grpcsOwn := []grpc.DialOption{grpc.WithDefaultServiceConfig("{}")} // DialAll names round_robin
	for name, row := range map[string]struct {
		file          string
		others        []grpc.DialOption
		least, atMost float64
	}{
		"as it is":   {text, nil, 0.995, 1},
		"pick_first": {strings.Replace(text, "round_robin", "pick_first", 1), nil, 0, 0},
		"unnamed":    {strings.Replace(text, "loadBalancingConfig: [{round_robin: {}}]\n", "", 1), grpcsOwn, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				retrier := testkit.Must(interceptor.New(testkit.Must(policy.Parse("retry.yaml", []byte(row.file)))(t)))(t)
				servers := []*testserver.Server{testserver.Start(t), testserver.Start(t), testserver.Start(t)}
				servers[0].On(method, testserver.Fail(codes.Unavailable, "broken"))
				conn := testkit.Must(testserver.DialAll(servers, append(retrier.DialOptions(), row.others...)...))(t)
				defer func() { testkit.NoError(t, conn.Close()) }()
				const calls = 2000
				succeeded := 0
				for range calls {
					if err := conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}); err == nil {
						succeeded++
					}
					time.Sleep(10 * time.Millisecond)
				}
				if share := float64(succeeded) / calls; share < row.least || share > row.atMost {
					t.Errorf("%.1f %% of the calls succeed; want %.1f to %.1f %%", 100*share, 100*row.least, 100*row.atMost)
				}
			})
		})
	}
}
