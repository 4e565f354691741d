// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//nolint:testableexamples // they need servers; that they compile is the test
package clients

import (
	"context"
	"log"
	"time"

	"cloud.google.com/go/bigtable"
	pubsub "cloud.google.com/go/pubsub/v2"
	vkit "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/googleapis/gax-go/v2"
	grpcgateway "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.etcd.io/etcd/api/v3/etcdserverpb/gw"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.temporal.io/sdk/client"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/stagger-go/stagger/interceptor"
)

var creds = credentials.NewTLS(nil)

func load() *interceptor.Retrier {
	retrier, err := interceptor.Load("retry.yaml")
	if err != nil {
		log.Fatal(err)
	}
	return retrier
}

// interceptorsOnly are the dial options of the page's recipes.
func interceptorsOnly(retrier *interceptor.Retrier) []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(retrier.Unary()),
		grpc.WithChainStreamInterceptor(retrier.Stream()),
		grpc.WithDisableRetry(),
	}
	return options
}

func Example_etcd() {
	options := interceptorsOnly(load())

	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{"etcd-0:2379", "etcd-1:2379"},
		DialOptions:          options,
		DialKeepAliveTime:    30 * time.Second, // without it, nothing notices a machine that vanishes
		DialKeepAliveTimeout: 10 * time.Second,
		MaxUnaryRetries:      1, // one try: retries are stagger's
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

func Example_otlp() {
	options, ctx := interceptorsOnly(load()), context.Background()

	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithDialOption(options...),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}))
	if err != nil {
		log.Fatal(err)
	}
	defer exporter.Shutdown(ctx)
}

func Example_pubsub() {
	options, ctx := interceptorsOnly(load()), context.Background()

	var opts []option.ClientOption
	for _, o := range options {
		opts = append(opts, option.WithGRPCDialOption(o))
	}
	once := []gax.CallOption{gax.WithRetry(func() gax.Retryer { return nil })}
	client, err := pubsub.NewClientWithConfig(ctx, "project", &pubsub.ClientConfig{
		TopicAdminCallOptions: &vkit.TopicAdminCallOptions{GetTopic: once}, // and each other method that the file names
	}, opts...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

func Example_bigtable() {
	options, ctx := interceptorsOnly(load()), context.Background()

	var opts []option.ClientOption
	for _, o := range options {
		opts = append(opts, option.WithGRPCDialOption(o))
	}
	client, err := bigtable.NewClient(ctx, "project", "instance", opts...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

func Example_temporal() {
	options := interceptorsOnly(load())

	temporal, err := client.Dial(client.Options{
		HostPort:          "temporal:7233",
		ConnectionOptions: client.ConnectionOptions{DialOptions: options},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer temporal.Close()
}

func Example_gateway() {
	retrier, ctx := load(), context.Background()

	conn, err := grpc.NewClient("dns:///etcd:2379", append(retrier.DialOptions(), grpc.WithTransportCredentials(creds))...)
	if err != nil {
		log.Fatal(err)
	}
	mux := grpcgateway.NewServeMux()
	if err := gw.RegisterKVHandler(ctx, mux, conn); err != nil { // your own handlers in place of etcd's
		log.Fatal(err)
	}
}
