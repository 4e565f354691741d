// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clients

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/testkit"
)

// etcd is a running member, with its data in a folder of the test.
type etcd struct {
	*testkit.Process

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
	e.Process = testkit.StartProcess(t, nil, []string{"ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH}, "etcd", e.args...)
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
	return testkit.Must(clientv3.New(c))(t)
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
