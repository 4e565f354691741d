// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/proctest"
)

const etcdName = "etcd clientv3"

// etcd is a running member, with its data in a folder of the test.
type etcd struct {
	*proctest.Process

	address string
	args    []string
}

func startEtcd(t *testing.T) *etcd {
	t.Helper()
	if os.Getenv("STAGGER_CLIENTS") == "" {
		t.Skip("it needs etcd; `make clients` installs that and runs it")
	}
	free := func() string {
		lis := listen(t)
		defer lis.Close()
		return lis.Addr().String()
	}
	e := &etcd{address: free()}
	peers := "http://" + free()
	e.args = []string{
		"--name", "n", "--data-dir", t.TempDir(), "--log-level", "error", "--logger", "zap",
		"--listen-client-urls", "http://" + e.address, "--advertise-client-urls", "http://" + e.address,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "n=" + peers,
		"--heartbeat-interval", "50", "--election-timeout", "500",
	}
	e.run(t)
	return e
}

// run starts it, or restarts it, and waits until it answers.
func (e *etcd) run(t *testing.T) {
	t.Helper()
	e.Process = proctest.Start(t, nil, []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH}, "etcd", e.args...)
	s := openEtcd(t, e.address, true, plaintext)
	defer s.close()
	if err := s.read(within(t)); err != nil {
		t.Fatal("etcd does not answer: ", err)
	}
}

func dialEtcd(t *testing.T, target string, retries bool, dial ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	c := clientv3.Config{Endpoints: []string{target}, DialOptions: dial, Logger: zap.NewNop()}
	if !retries {
		c.MaxUnaryRetries = 1
	}
	return must.Get(clientv3.New(c))(t)
}

func openEtcd(t *testing.T, target string, retries bool, dial ...grpc.DialOption) session {
	t.Helper()
	c := dialEtcd(t, target, retries, dial...)
	return session{
		happy: func(ctx context.Context) ([]string, error) { return useEtcd(ctx, c) },
		read: func(ctx context.Context) error {
			_, err := c.Get(ctx, "k")
			return err
		},
		write: func(ctx context.Context) error {
			_, err := c.Put(ctx, "k", "v")
			return err
		},
		close: func() { c.Close() },
	}
}

// useEtcd puts, watches, compares and swaps, and holds a lease.
func useEtcd(ctx context.Context, c *clientv3.Client) ([]string, error) {
	if _, err := c.Delete(ctx, "happy/", clientv3.WithPrefix()); err != nil {
		return nil, err
	}
	watched := c.Watch(ctx, "happy/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watched
	lease, err := c.Grant(ctx, 60)
	if err != nil {
		return nil, err
	}
	alive, err := c.KeepAliveOnce(ctx, lease.ID)
	if err != nil {
		return nil, err
	}
	txn, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version("happy/a"), "=", 0)).
		Then(clientv3.OpPut("happy/a", "1", clientv3.WithLease(lease.ID))).Else(clientv3.OpGet("happy/a")).Commit()
	if err != nil {
		return nil, err
	}
	got, err := c.Get(ctx, "happy/a")
	if err != nil {
		return nil, err
	}
	results := []string{fmt.Sprint(alive.TTL, txn.Succeeded, string(got.Kvs[0].GetValue()), got.Kvs[0].GetVersion())}
	if _, err := c.Revoke(ctx, lease.ID); err != nil {
		return nil, err
	}
	for len(results) < 3 {
		for _, e := range (<-watched).Events {
			results = append(results, fmt.Sprint(e.GetType(), string(e.GetKv().GetKey()), string(e.GetKv().GetValue())))
		}
	}
	return results, nil
}

func TestEtcd(t *testing.T) {
	library{
		name: etcdName, module: "go.etcd.io/etcd/client/v3",
		read: "/etcdserverpb.KV/Range", write: "/etcdserverpb.KV/Put", tame: true, tries: 4,
		serve: func(t *testing.T) string { return startEtcd(t).address }, open: openEtcd,
	}.test(t)
}

// TestEtcd_Kill kills etcd twice while keys are written and watched and a lease is kept alive. The watch shows each write
// once, in order, and the lease survives.
func TestEtcd_Kill(t *testing.T) {
	noLeaks(t)
	e := startEtcd(t)
	names := retrier(t, "methodConfig:\n  - {name: [{service: etcdserverpb.KV, method: Range}], "+retryPolicy+"}\n")
	c := dialEtcd(t, e.address, false, append(names.DialOptions(), plaintext)...)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	lease := must.Get(c.Grant(ctx, 10))(t)
	alive := must.Get(c.KeepAlive(ctx, lease.ID))(t)
	watched := c.Watch(ctx, "key/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watched
	const each = 200
	var written []string
	for round := range 3 {
		for i := range each {
			key := fmt.Sprintf("key/%d-%03d", round, i)
			if err := putOnce(ctx, c, key); err != nil {
				t.Fatal(key, ": ", err)
			}
			written = append(written, key)
		}
		if round < 2 {
			e.Kill()
			e.run(t)
		}
	}
	var seen []string
	for len(seen) < len(written) && ctx.Err() == nil {
		for _, event := range (<-watched).Events {
			seen = append(seen, string(event.GetKv().GetKey()))
		}
	}
	if !slices.Equal(seen, written) {
		t.Errorf("the watch showed %d events, want the %d keys that were written", len(seen), len(written))
	}
	for len(alive) > 0 {
		<-alive
	}
	select {
	case a, open := <-alive:
		if !open || a.TTL <= 0 {
			t.Errorf("the lease was not kept alive: %v", a)
		}
	case <-ctx.Done():
		t.Error("no answer to keep-alives after the restarts")
	}
}

// putOnce creates a key by repeated Txns until it exists: the comparison makes the Txn idempotent.
func putOnce(ctx context.Context, c *clientv3.Client, key string) error {
	for {
		_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "=", 0)).Then(clientv3.OpPut(key, path.Base(key))).Commit()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !strings.Contains(err.Error(), "Unavailable") && !strings.Contains(err.Error(), "leader") {
			return err
		}
	}
}
