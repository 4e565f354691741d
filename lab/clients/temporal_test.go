// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

func TestTemporal(t *testing.T) {
	library{
		name: "Temporal SDK", module: "go.temporal.io/sdk", tries: 4,
		read:  workflowservice.WorkflowService_DescribeWorkflowExecution_FullMethodName,
		write: workflowservice.WorkflowService_SignalWorkflowExecution_FullMethodName,
		serve: func(t *testing.T) string {
			server := testserver.Start(t, testserver.Listener(testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)))
			server.On(workflowservice.WorkflowService_GetSystemInfo_FullMethodName, testserver.OK(&workflowservice.GetSystemInfoResponse{ServerVersion: "1"}))
			server.On(workflowservice.WorkflowService_StartWorkflowExecution_FullMethodName, testserver.OK(&workflowservice.StartWorkflowExecutionResponse{RunId: "run"}))
			server.On(workflowservice.WorkflowService_SignalWorkflowExecution_FullMethodName, testserver.OK(&workflowservice.SignalWorkflowExecutionResponse{}))
			server.On(workflowservice.WorkflowService_DescribeWorkflowExecution_FullMethodName, testserver.OK(&workflowservice.DescribeWorkflowExecutionResponse{
				WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
			}))
			return server.Target()
		},
		open: func(t *testing.T, target string, _ bool, dial ...grpc.DialOption) session {
			c, err := client.Dial(client.Options{
				HostPort: target, Identity: "lab", Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
				ConnectionOptions: client.ConnectionOptions{DialOptions: dial},
			})
			if err != nil {
				t.Fatal(err)
			}
			signal := func(ctx context.Context) error { return c.SignalWorkflow(ctx, "order", "run", "paid", nil) }
			return session{
				happy: func(ctx context.Context) ([]string, error) {
					run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "order", TaskQueue: "orders"}, "Order")
					if err != nil {
						return nil, err
					}
					if err := signal(ctx); err != nil {
						return nil, err
					}
					described, err := c.DescribeWorkflowExecution(ctx, "order", "run")
					return []string{run.GetRunID(), described.GetWorkflowExecutionInfo().GetStatus().String()}, err
				},
				read: func(ctx context.Context) error {
					_, err := c.DescribeWorkflowExecution(ctx, "order", "run")
					return err
				},
				write: signal,
				close: c.Close,
			}
		},
	}.test(t)
}
