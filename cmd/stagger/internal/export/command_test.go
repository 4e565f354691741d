// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stagger-go/stagger/cmd/stagger/internal/export"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func run(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := export.Command()
	c.SetArgs(args)
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.Execute()
	return stdout.String(), stderr.String(), err
}

const file = "../../../../policy/testdata/good/all.yaml"

// TestExportIsTakenByGRPC exports every key.
func TestExportIsTakenByGRPC(t *testing.T) {
	t.Parallel()
	out, notes, err := run(t, file, "--assume-idempotent")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(out))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conn.Close()
	for _, ours := range []string{"chain", "budget", "idempotency"} {
		if strings.Contains(out, ours) {
			t.Errorf("gRPC does not know %s:\n%s", ours, out)
		}
		if !strings.Contains(notes, ours) {
			t.Errorf("that %s is lost is not said:\n%s", ours, notes)
		}
	}
	if !strings.Contains("\n"+notes, "\nnot in plain gRPC: "+file+": methodConfig[0].") {
		t.Error(notes)
	}
}

// TestExportRecord reads its own record back.
func TestExportRecord(t *testing.T) {
	t.Parallel()
	plain, _, err := run(t, file, "--assume-idempotent")
	if err != nil {
		t.Fatal(err)
	}
	record, _, err := run(t, file, "--assume-idempotent", "--txt")
	var list []struct {
		ServiceConfig json.RawMessage `json:"serviceConfig"`
	}
	if err != nil || strings.Count(record, "\n") != 1 || json.Unmarshal([]byte(strings.TrimPrefix(record, "grpc_config=")), &list) != nil || len(list) != 1 {
		t.Fatalf("%v\n%s", err, record)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(plain)); err != nil || string(list[0].ServiceConfig) != want.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, list[0].ServiceConfig, &want)
	}
}

// A TXT record has 65,535 bytes for strings of 255 and their lengths: 65,279 of text. Name servers refuse or cut a longer one.
func TestExportRecord_Size(t *testing.T) {
	t.Parallel()
	record := func(method int) (out, to string, err error) {
		dir := t.TempDir()
		policy, to := filepath.Join(dir, "retry.yaml"), filepath.Join(dir, "record.txt")
		text := "methodConfig: [{name: [{service: a.B, method: " + strings.Repeat("m", method) + "}], timeout: 1s}]"
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _, err = run(t, policy, "--txt")
		if _, _, toFile := run(t, policy, "--txt", "--output", to); (toFile == nil) != (err == nil) {
			t.Errorf("%v to a file, %v to the output", toFile, err)
		}
		return out, to, err
	}
	short, _, err := record(1)
	if err != nil {
		t.Fatal(err)
	}
	most := 65_279 - (len(short) - len("\n") - 1)
	if out, _, err := record(most); err != nil || len(out) != 65_279+len("\n") {
		t.Errorf("%d bytes, %v; want 65280", len(out), err)
	}
	out, to, err := record(most + 1)
	const want = "retry.yaml: --txt: takes 65536 bytes in a DNS TXT record, which holds at most 65535: "
	if err == nil || !strings.Contains(err.Error(), want) || out != "" {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("the file was written")
	}
}

func TestExportLeavesUnsafeOut(t *testing.T) {
	t.Parallel()
	const orders = "../../../../examples/orders/retry.yaml"
	safe, notes, err := run(t, orders)
	if err != nil || strings.Count(safe, "retryPolicy") != 1 || !strings.Contains(notes, `/acme.orders.v1.OrderService/: retryPolicy left out: nothing declares`) {
		t.Errorf("%v\n%s\n%s", err, safe, notes)
	}
	all, notes, err := run(t, orders, "--assume-idempotent")
	if err != nil || strings.Count(all, "retryPolicy") != 2 || strings.Contains(notes, "left out") {
		t.Errorf("%v\n%s\n%s", err, all, notes)
	}
	api, notes, err := run(t, orders, "--descriptors", "../../../../examples/orders/orders.binpb")
	if err != nil || !strings.Contains(api, `"CancelOrder"`) || strings.Contains(api, "CreateOrder") || !strings.Contains(notes, "but for CancelOrder") {
		t.Errorf("%v\n%s\n%s", err, api, notes)
	}
}

func TestExportToFile(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "config.json")
	out, _, err := run(t, file, "--output", to)
	if err != nil || out != "" {
		t.Fatalf("%v: %s", err, out)
	}
	want, _, err := run(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != want || want == "" {
		t.Errorf("%v: the file has\n%s\nand the standard output\n%s", err, got, want)
	}
	if _, _, err := run(t, file, "--output", filepath.Join(t.TempDir(), "none", "config.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v; want os.ErrNotExist", err)
	}
}

func TestExportErrors(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	testkit.NoError(t, os.WriteFile(bad, []byte("retries: 3"), 0o600))
	if out, _, err := run(t, bad); !errors.As(err, new(*policy.Error)) || out != "" {
		t.Errorf("%v; want a *policy.Error and no output:\n%s", err, out)
	}
}
