// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

const exportSpans = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// spans is a collector that stores the names of spans.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	names []string
}

func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.names = append(s.names, span.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// take returns the spans since the last call.
func (s *spans) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names
	s.names = nil
	return names
}

// serveGRPC serves the registered services until the test ends.
func serveGRPC(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	lis := listen(t)
	server := grpc.NewServer()
	register(server)
	go func() { _ = server.Serve(lis) }() // it ends by Stop
	t.Cleanup(server.Stop)
	return lis.Addr().String()
}

func TestOTLP(t *testing.T) {
	var received spans
	library{
		name: "OTLP exporters", module: "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc",
		read: exportSpans, write: exportSpans, tame: true, tries: 4,
		serve: func(t *testing.T) string {
			return serveGRPC(t, func(s *grpc.Server) { collector.RegisterTraceServiceServer(s, &received) })
		},
		open: func(t *testing.T, target string, retries bool, dial ...grpc.DialOption) session {
			exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(target), otlptracegrpc.WithDialOption(dial...),
				otlptracegrpc.WithInsecure(), otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
					Enabled: retries, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond, MaxElapsedTime: 10 * time.Second,
				}))
			if err != nil {
				t.Fatal(err)
			}
			export := func(ctx context.Context) error {
				return exporter.ExportSpans(ctx, tracetest.SpanStubs{{Name: "exported"}}.Snapshots())
			}
			return session{
				happy: func(ctx context.Context) ([]string, error) {
					provider := trace.NewTracerProvider(trace.WithBatcher(exporter, trace.WithExportTimeout(10*time.Second)))
					defer func() { _ = provider.Shutdown(ctx) }() // the received spans
					received.take()
					for i := range 3 {
						_, span := provider.Tracer("lab").Start(ctx, fmt.Sprint("span ", i))
						span.End()
					}
					if err := provider.ForceFlush(ctx); err != nil {
						return nil, err
					}
					return received.take(), nil
				},
				read: export, write: export,
				close: func() { _ = exporter.Shutdown(context.WithoutCancel(t.Context())) },
			}
		},
	}.test(t)
}
