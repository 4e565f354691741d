// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package outages

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/report"
	"github.com/stagger-go/stagger/internal/report/terminal"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const freshProcesses = 600

// fresh plays processes that start within a second, make one call each, and end. The server needs three seconds for these calls, and works on
// requests whose client has left. fresh returns how many calls succeed, and how many requests the server has received for each.
func fresh(t *testing.T, strategy string) (succeeded int, perCall float64) {
	t.Helper()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(`
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    timeout: 3s
    `+strategy)))(t)
	synctest.Test(t, func(t *testing.T) {
		queue := testkit.Must(faults.NewQueue(faults.QueueConfig{Workers: 4, Time: 20 * time.Millisecond, Length: 10_000}))(t)
		server := testserver.Start(t)
		server.On(method, queue.Serve(testserver.OK()))
		var ok atomic.Int64
		var processes sync.WaitGroup
		for range freshProcesses {
			processes.Go(func() {
				r := testkit.Must(interceptor.New(set))(t)
				conn := testkit.Must(testserver.DialAll([]*testserver.Server{server}, r.DialOptions()...))(t)
				defer conn.Close()
				if err := conn.Invoke(context.Background(), method, &emptypb.Empty{}, &emptypb.Empty{}); err == nil {
					ok.Add(1)
				}
			})
			time.Sleep(time.Second / freshProcesses)
		}
		processes.Wait()
		succeeded, perCall = int(ok.Load()), float64(server.Count(method))/freshProcesses
	})
	return succeeded, perCall
}

// TestDocsAreCurrent_FreshProcesses plays what docs/evidence/outages.md says of onAttemptTimeout: RETRY: it needs no record of responses, and so adds load
// to an overload.
func TestDocsAreCurrent_FreshProcesses(t *testing.T) {
	const retries = "retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]%s}"
	shown := report.Table{
		Title:   fmt.Sprintf("%d processes make one call each, at a server that can answer a third of them in that second", freshProcesses),
		Columns: []string{"policy", "calls that succeed", "requests for each call"},
	}
	for _, row := range []struct{ name, strategy string }{
		{"no `perAttemptTimeout`", fmt.Sprintf(retries, "")},
		{"`perAttemptTimeout: 0.4s`", fmt.Sprintf(retries, ", perAttemptTimeout: 0.4s")},
		{"… with `onAttemptTimeout: RETRY`", fmt.Sprintf(retries, ", perAttemptTimeout: 0.4s, onAttemptTimeout: RETRY")},
		{"`hedgingPolicy`, `hedgingDelay: 0.4s`", "hedgingPolicy: {maxAttempts: 4, hedgingDelay: 0.4s}"},
	} {
		succeeded, perCall := fresh(t, row.strategy)
		if retry := strings.Contains(row.strategy, "RETRY"); retry != (succeeded < freshProcesses) {
			t.Errorf("%s: %d of %d calls succeed; want all of them, but for RETRY", row.name, succeeded, freshProcesses)
		}
		shown.Rows = append(shown.Rows, []string{row.name, fmt.Sprint(succeeded), fmt.Sprintf("%.2f", perCall)})
	}
	agree(t, page, "fresh", shown, map[string][]terminal.Off{
		"calls that succeed": {{Abs: 30}}, "requests for each call": {{Abs: 0.2}},
	})
}
