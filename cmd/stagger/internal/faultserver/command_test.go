// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/cmd/stagger/internal/faultserver"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	get    = "/acme.orders.v1.OrderService/GetOrder"
	orders = "../../../../examples/orders/orders.binpb"
)

// process is a running command.
type process struct {
	out  *bufio.Scanner
	stop func() // like Ctrl-C
	done <-chan error
}

// start starts the command on a free port; its output must be read.
func start(t *testing.T, args ...string) process {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	c := faultserver.Command()
	c.SetArgs(append([]string{"--listen", "127.0.0.1:0"}, args...))
	c.SetOut(w)
	c.SilenceUsage, c.SilenceErrors = true, true
	go func() {
		err := c.ExecuteContext(ctx)
		w.Close()
		done <- err
	}()
	t.Cleanup(func() {
		stop()
		r.Close()
	})
	return process{bufio.NewScanner(r), stop, done}
}

// line returns the next line of the output.
func (p process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("no more output: %v", <-p.done)
	}
	return p.out.Text()
}

// rest stops the command, and returns the rest of its output.
func (p process) rest(t *testing.T) string {
	t.Helper()
	p.stop()
	var b strings.Builder
	for p.out.Scan() {
		b.WriteString(p.out.Text() + "\n")
	}
	if err := <-p.done; err != nil {
		t.Errorf("the command ended with %v", err)
	}
	return b.String()
}

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// dial connects to a server like any client.
func dial(t *testing.T, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn := testkit.Must(grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func call(t *testing.T, conn *grpc.ClientConn, opts ...grpc.CallOption) codes.Code {
	t.Helper()
	return status.Code(conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, opts...))
}

func TestServerSeesRetries(t *testing.T) {
	t.Parallel()
	p := start(t, "--descriptors", orders, "--script", file(t, "faults.yaml", `
scripts:
  - method: /acme.orders.v1.OrderService/GetOrder
    steps:
      - {fail: {code: UNAVAILABLE}, times: 2}
      - {replies: [{json: {name: tea}}]}
`))
	line := p.line(t)
	address, rest, ok := strings.Cut(strings.TrimPrefix(line, "listening on "), ", control on http://127.0.0.1:")
	if _, err := strconv.Atoi(rest); !ok || err != nil {
		t.Fatalf("got %q; want two addresses", line)
	}
	retrier := testkit.Must(interceptor.New(mustParse(t, `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.001s, maxBackoff: 0.001s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]}
`)))(t)
	conn := dial(t, address, retrier.DialOptions()...)
	if code := call(t, conn, grpc.UseCompressor(gzip.Name)); code != codes.OK {
		t.Errorf("the call ended with %v; want OK", code)
	}
	for i, want := range []string{"UNAVAILABLE", "UNAVAILABLE", "OK"} {
		if line := p.line(t); strings.Fields(line)[1] != want || strings.Contains(line, "retry") != (i > 0) {
			t.Errorf("line %d is %q; want %s", i, line, want)
		}
	}
	if got := p.rest(t); got != "" {
		t.Errorf("after that, %s", got)
	}
}

func mustParse(t *testing.T, text string) *policy.Set {
	t.Helper()
	return testkit.Must(policy.Parse("retry.yaml", []byte(text)))(t)
}

func TestServerIsControlled(t *testing.T) {
	t.Parallel()
	p := start(t, "--format", "json")
	var first struct {
		Listening string `json:"listening"`
		Control   string `json:"control"`
	}
	testkit.NoError(t, json.Unmarshal([]byte(p.line(t)), &first))
	conn := dial(t, first.Listening)
	if got := ask(t, http.MethodPost, first.Control, `scripts: [{method: "*", steps: [{fail: {code: ABORTED}}, {}]}]`); got != "" {
		t.Fatal(got)
	}
	var line struct {
		Method string `json:"method"`
		Code   string `json:"code"`
		Number int    `json:"number"`
	}
	for i, want := range []codes.Code{codes.Aborted, codes.OK, codes.OK} {
		if got := call(t, conn); got != want {
			t.Errorf("got %v; want %v", got, want)
		}
		if err := json.Unmarshal([]byte(p.line(t)), &line); err != nil || line.Method != get || line.Number != i+1 || !strings.EqualFold(line.Code, want.String()) {
			t.Errorf("%v: got %+v; want attempt %d with %v", err, line, i+1, want)
		}
	}
	if got := ask(t, http.MethodGet, first.Control, ""); strings.Count(got, get) != 3 || !strings.Contains(got, `"count":3`) {
		t.Errorf("got %s; want 3 attempts", got)
	}
	p.rest(t)
}

// ask makes a request, and returns the answer.
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	r := testkit.Must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	r.Header.Set("X-Stagger-Control", "1")
	reply, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	testkit.NoError(t, err)
	defer reply.Body.Close()
	text := testkit.Must(io.ReadAll(reply.Body))(t)
	return string(text)
}

func TestServerErrors(t *testing.T) {
	t.Parallel()
	bad := file(t, "bad.yaml", "scripts: 7\n")
	for _, row := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--listen", "127.0.0.1:0", "--control", "192.0.2.1:0"}, "--control 192.0.2.1:0: other machines can reach it", cli.ExitUsage},
		{[]string{"--script", "none.yaml"}, "open none.yaml: no such file or directory", cli.ExitFailure},
		{[]string{"--script", bad}, bad + ":1:10: scripts: 7: must be a list, in brackets or one entry a line after a dash", cli.ExitFailure},
		{[]string{"--descriptors", bad}, bad + ": is not a binary google.protobuf.FileDescriptorSet; make one with buf build", cli.ExitFailure},
	} {
		c := faultserver.Command()
		c.SetArgs(row.args)
		c.SilenceUsage, c.SilenceErrors = true, true
		err := c.ExecuteContext(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || cli.ExitCode(err) != row.code {
			t.Errorf("%v: got %v, exit code %d; want %s, %d", row.args, err, cli.ExitCode(err), row.want, row.code)
		}
	}
}
