// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"log"

	"cloud.google.com/go/bigtable"
	pubsub "cloud.google.com/go/pubsub/v2"
	vkit "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/googleapis/gax-go/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"google.golang.org/api/option"

	"github.com/stagger-go/stagger/interceptor"
)

func load() *interceptor.Retrier {
	retrier, err := interceptor.Load("retry.yaml")
	if err != nil {
		log.Fatal(err)
	}
	return retrier
}

func Example_etcd() {
	retrier := load()

	client, err := clientv3.New(clientv3.Config{
		Endpoints:       []string{"etcd-0:2379", "etcd-1:2379"},
		DialOptions:     retrier.DialOptions(),
		MaxUnaryRetries: 1, // one try: retries are stagger's
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}

func Example_otlp() {
	retrier, ctx := load(), context.Background()

	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithDialOption(retrier.DialOptions()...),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}))
	if err != nil {
		log.Fatal(err)
	}
	defer exporter.Shutdown(ctx)
}

func Example_pubsub() {
	retrier, ctx := load(), context.Background()

	var opts []option.ClientOption
	for _, o := range retrier.DialOptions() {
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
	retrier, ctx := load(), context.Background()

	var opts []option.ClientOption
	for _, o := range retrier.DialOptions() {
		opts = append(opts, option.WithGRPCDialOption(o))
	}
	client, err := bigtable.NewClient(ctx, "project", "instance", opts...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
}
