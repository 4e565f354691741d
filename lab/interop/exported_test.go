// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// caller is a client program that makes calls on a test's orders.
type caller interface {
	// call makes calls in sequence over one connection, and returns their codes.
	call(t *testing.T, o order) []string
}

// order describes the calls to make; the programs in other languages read it.
type order struct {
	Target string `json:"target"`
	Method string `json:"method"`
	Kind   string `json:"kind"` // unary or stream
	Calls  int    `json:"calls"`
}

// goCaller makes calls in this process.
type goCaller func(*testing.T) []grpc.DialOption

func (c goCaller) call(t *testing.T, o order) (answers []string) {
	t.Helper()
	conn := dial(t, o.Target, c(t)...)
	defer conn.Close()
	for range o.Calls {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var err error
		if o.Kind == "unary" {
			err = conn.Invoke(ctx, o.Method, new(emptypb.Empty), new(emptypb.Empty))
		} else {
			err = drain(ctx, conn, o.Method)
		}
		cancel()
		answers = append(answers, codename.Of(status.Code(err)))
	}
	return answers
}

// drain receives a whole server stream.
func drain(ctx context.Context, conn *grpc.ClientConn, method string) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(new(emptypb.Empty)); err != nil && err != io.EOF {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if err := stream.RecvMsg(new(emptypb.Empty)); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// foreignCaller is a client in another language.
type foreignCaller struct {
	in  io.Writer
	out *bufio.Scanner
}

// calls starts the language's client, with a service config.
func (l language) calls(t *testing.T, config string) caller {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close() })
	var in io.WriteCloser
	testkit.StartProcess(t, func(cmd *exec.Cmd) {
		cmd.Stdout = write
		if in, err = cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
	}, nil, l.command[0], append(l.command[1:], program(t, l.client), config)...)
	write.Close() // the program has its copy
	return foreignCaller{in, bufio.NewScanner(read)}
}

func (c foreignCaller) call(t *testing.T, o order) (answers []string) {
	t.Helper()
	text := testkit.Must(json.Marshal(o))(t)
	testkit.Must(fmt.Fprintf(c.in, "%s\n", text))(t)
	if !c.out.Scan() {
		t.Fatalf("the client has ended: %v", c.out.Err())
	}
	if err := json.Unmarshal(c.out.Bytes(), &answers); err != nil {
		t.Fatalf("%v: %s", err, c.out.Text())
	}
	return answers
}

// buildStagger builds the command, and returns its path.
func buildStagger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stagger")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = "../../cmd/stagger"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return path
}

// exportedPolicy is the file of all clients: stagger follows it, the others its output of "stagger export".
const exportedPolicy = `
methodConfig:
  - name: [{service: interop.v1.OrderService, method: GetOrder}, {service: interop.v1.OrderService, method: WatchOrders}]
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.01s, maxBackoff: 0.02s, backoffMultiplier: 2,
      retryableStatusCodes: [UNAVAILABLE, RESOURCE_EXHAUSTED], budget: NONE}
  - name: [{service: interop.v1.OrderService, method: ListOrders}]
    hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0.1s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}
  - name: [{service: interop.v1.OrderService}]
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.01s, maxBackoff: 0.02s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: NONE}
`

// namedCaller is a caller with its name on the page.
type namedCaller struct {
	caller

	name string
}

// allCallers returns stagger, which follows exportedPolicy, and clients in three languages, which follow its exported form.
func allCallers(t *testing.T, command string) []namedCaller {
	t.Helper()
	exported := testkit.Must(exec.CommandContext(t.Context(), command, "export", file(t, "retry.yaml", exportedPolicy)).Output())(t)
	all := []namedCaller{
		{goCaller(func(t *testing.T) []grpc.DialOption { return retrier(t, exportedPolicy).DialOptions() }), ourName},
		{goCaller(func(*testing.T) []grpc.DialOption {
			return []grpc.DialOption{grpc.WithDefaultServiceConfig(string(exported))}
		}), "gRPC for Go"},
	}
	for _, l := range languages {
		l.uses(t)
		all = append(all, namedCaller{l.calls(t, file(t, "service-config.json", string(exported))), l.name})
	}
	return all
}

// untilKnown is the number of calls after which a method's usual latency is known: before that, stagger sends no hedge after
// a delay.
const untilKnown = 20

// TestExportedPolicy makes clients in three languages call a testserver over loopback, with the policy that "stagger export"
// writes, and compares the numbers of attempts with the table, including known differences.
func TestExportedPolicy(t *testing.T) {
	required(t)
	callers := allCallers(t, buildStagger(t))
	port := testkit.Port(t)
	var listen net.ListenConfig
	server := testserver.Start(t, testserver.Listener(testkit.Must(listen.Listen(t.Context(), "tcp", address(port)))(t)))
	ok, failure := testserver.OK(), testserver.Fail(codes.Unavailable)
	steps := func(list ...testserver.Step) []testserver.Step { return list }
	shown := table{header: []string{"scenario"}}
	for _, c := range callers {
		shown.header = append(shown.header, c.name)
	}
	for _, row := range []struct {
		name   string
		method string
		steps  []testserver.Step
		want   string // attempts of each client for the last call, in the order of the callers
		before int    // earlier calls, of one attempt each
	}{
		{"two failures", "GetOrder", steps(failure.Times(2), ok), "3 3 3 3", 0},
		{"failures without end", "GetOrder", steps(failure), "4 4 4 4", 0},
		{"RESOURCE_EXHAUSTED twice", "GetOrder", steps(testserver.Fail(codes.ResourceExhausted).Times(2), ok), "3 3 3 3", 0},
		{"a code that is not listed", "GetOrder", steps(testserver.Fail(codes.Aborted)), "1 1 1 1", 0},
		{"a connection that is cut", "GetOrder", steps(testserver.Drop(), ok), "2 2 2 2", 0},
		{"a method that is not declared idempotent", "CreateOrder", steps(failure), "1 1 1 1", 0},
		{"headers, then a failure", "GetOrder", steps(failure.Header(metadata.Pairs("x-here", "1")), ok), "2 1 1 1", 0},
		{"a server stream, two failures", "WatchOrders", steps(failure.Times(2), ok), "3 3 3 3", 0},
		{"a server stream, a message, then a failure", "WatchOrders", steps(failure.RawReplies(nil), ok), "1 1 1 1", 0},
		{"pushback 20", "GetOrder", steps(failure.Pushback("20"), ok), "2 2 2 2", 0},
		{"pushback -1", "GetOrder", steps(failure.Pushback("-1"), ok), "1 1 1 1", 0},
		{"pushback abc", "GetOrder", steps(failure.Pushback("abc"), ok), "1 1 1 2", 0},
		{"pushback +5", "GetOrder", steps(failure.Pushback("+5"), ok), "1 2 2 2", 0},
		{"pushback 005", "GetOrder", steps(failure.Pushback("005"), ok), "1 2 2 2", 0},
		{"pushback 1.5", "GetOrder", steps(failure.Pushback("1.5"), ok), "1 1 1 2", 0},
		{"pushback empty", "GetOrder", steps(failure.Pushback(""), ok), "1 1 1 2", 0},
		{"two pushbacks", "GetOrder", steps(failure.Pushback("1", "2"), ok), "1 1 2 2", 0},
		{"hedging, the first attempt takes 600 ms", "ListOrders", steps(ok.Times(untilKnown), ok.Delay(600*time.Millisecond), ok), "2 1 1 2", untilKnown},
		{"hedging, every attempt fails", "ListOrders", steps(failure), "3 1 1 3", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			method, kind := service+row.method, "unary"
			if row.method == "WatchOrders" {
				kind = "stream"
			}
			shownRow := []string{row.name}
			for _, c := range callers {
				testkit.NoError(t, server.Replace(map[string][]testserver.Step{method: row.steps}))
				answers := c.call(t, order{address(port), method, kind, row.before + 1})
				t.Logf("%s: %d attempts, %v", c.name, server.Count(method), answers[row.before:])
				shownRow = append(shownRow, strconv.Itoa(server.Count(method)-row.before))
			}
			if got := strings.Join(shownRow[1:], " "); got != row.want {
				t.Errorf("attempts: %s; the table says %s", got, row.want)
			}
			shown.rows = append(shown.rows, shownRow)
		})
	}
	evidence.worse("A pushback such as \"005\" ends a call; gRPC in all three languages reads it as a number.")
	evidence.add(40, section{title: "One policy in three languages", text: exportedText, tables: []table{shown}})
}

const exportedText = `
stagger follows a policy file, and the others the output of ` + "`stagger export`" + ` for it. Cells count the attempts of one call that the server saw.
gRPC for Go and Python do not hedge. stagger hedges a method after 20 calls, when it knows their usual latency. It retries after headers that the application has not seen. A
pushback with a sign or leading zeros is malformed, and means stop. Node retries after malformed pushbacks and after
two pushbacks, Python after two. A test fails when the table is no longer true.`
