// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2"
	vkit "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/testkit"
)

const (
	topic          = "projects/lab/topics/orders"
	subscription   = "projects/lab/subscriptions/orders"
	pubsubGetTopic = "/google.pubsub.v1.Publisher/GetTopic"
	pubsubPublish  = "/google.pubsub.v1.Publisher/Publish"
	receiveTimeout = 20 * time.Second
)

// google returns the client options with which libraries of Google Cloud use dial options.
func google(target string, dial []grpc.DialOption) []option.ClientOption {
	opts := []option.ClientOption{option.WithEndpoint(target), option.WithoutAuthentication(), option.WithTelemetryDisabled()}
	for _, d := range dial {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	return opts
}

// once turns off gax's retries of a method.
var once = gax.WithRetry(func() gax.Retryer { return nil })

func dialPubSub(t *testing.T, target string, retries bool, dial ...grpc.DialOption) *pubsub.Client {
	t.Helper()
	var config *pubsub.ClientConfig
	if !retries {
		config = &pubsub.ClientConfig{TopicAdminCallOptions: &vkit.TopicAdminCallOptions{GetTopic: []gax.CallOption{once}}}
	}
	return testkit.Must(pubsub.NewClientWithConfig(t.Context(), "lab", config, google(target, dial)...))(t)
}

func servePubSub(t *testing.T) string {
	t.Helper()
	server := pstest.NewServer()
	t.Cleanup(func() { server.Close() })
	testkit.Must(server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}))(t)
	testkit.Must(server.GServer.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 60}))(t)
	return server.Addr
}

// publish sends messages, each after the previous one was acknowledged.
func publish(ctx context.Context, p *pubsub.Publisher, texts ...string) error {
	for _, text := range texts {
		if _, err := p.Publish(ctx, &pubsub.Message{Data: []byte(text)}).Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

// receive returns this many messages, sorted.
func receive(ctx context.Context, c *pubsub.Client, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, receiveTimeout)
	defer cancel()
	var mu sync.Mutex
	var texts []string
	err := c.Subscriber(subscription).Receive(ctx, func(_ context.Context, m *pubsub.Message) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, string(m.Data))
		m.Ack()
		if len(texts) == n {
			cancel()
		}
	})
	slices.Sort(texts)
	return texts, err
}

func TestPubSub(t *testing.T) {
	library{
		name: "Pub/Sub", module: "cloud.google.com/go/pubsub/v2", read: pubsubGetTopic, write: pubsubPublish, tame: true, tries: 4,
		serve: servePubSub,
		open: func(t *testing.T, target string, retries bool, dial ...grpc.DialOption) session {
			c := dialPubSub(t, target, retries, dial...)
			p := c.Publisher(topic)
			return session{
				happy: func(ctx context.Context) ([]string, error) {
					if err := publish(ctx, p, "a", "b", "c"); err != nil {
						return nil, err
					}
					return receive(ctx, c, 3)
				},
				read: func(ctx context.Context) error {
					_, err := c.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: topic})
					return err
				},
				write: func(ctx context.Context) error { return publish(ctx, p, "lost") },
				close: func() {
					p.Stop()
					c.Close()
				},
			}
		},
	}.test(t)
}
