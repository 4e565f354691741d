// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/proctest"
)

// language is a language with a server and a client for these tests.
type language struct {
	name    string
	command []string // to run a program; its file follows
	server  string
	client  string
}

var languages = []language{
	{"Python", []string{"/usr/bin/python3"}, "python/server.py", "python/client.py"},
	{"Node", []string{"node"}, "node/server.js", "node/client.js"},
}

// uses records the versions of the language and of its gRPC.
func (l language) uses(t *testing.T) {
	t.Helper()
	evidence.uses(l.name, version(t, l.command[0], "--version"))
	switch l.name {
	case "Python":
		evidence.uses("grpcio (Python)", version(t, l.command[0], "-c", "import grpc; print(grpc.__version__)"))
	case "Node":
		evidence.uses("grpc-js (Node)", version(t, "grep", `"version"`, "node/node_modules/@grpc/grpc-js/package.json"))
	}
}

// program returns the full path of a program of the language.
func program(t *testing.T, path string) string {
	t.Helper()
	return must.Get(filepath.Abs(path))(t)
}

// foreignServer is a server in another language, which can be stopped and restarted.
type foreignServer struct {
	*proctest.Process

	port int
	runs string // file to which each handler adds a line
	args []string
}

// serve starts the language's server.
func (l language) serve(t *testing.T) *foreignServer {
	t.Helper()
	s := &foreignServer{port: proctest.Port(t), runs: filepath.Join(t.TempDir(), "runs")}
	s.args = append(append([]string{}, l.command...), program(t, l.server), strconv.Itoa(s.port), s.runs)
	s.run(t)
	return s
}

func (s *foreignServer) run(t *testing.T) {
	t.Helper()
	s.Process = proctest.Start(t, nil, nil, s.args[0], s.args[1:]...)
	listening(t, s.port)
}

// counts returns how often the handler of each request has run. A request is a text in protobuf's form: after two bytes, the
// first of which is a line feed.
func (s *foreignServer) counts(t *testing.T) map[string]int {
	t.Helper()
	text := must.Get(os.ReadFile(s.runs))(t)
	n := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 1 {
			n[line[1:]]++
		}
	}
	return n
}

// details is a server's google.rpc.RetryInfo, in hexadecimal digits.
func details(t *testing.T, delay time.Duration) string {
	t.Helper()
	info := must.Get(anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}))(t)
	b := must.Get(proto.Marshal(&spb.Status{Code: int32(codes.Unavailable), Message: "as the script says", Details: []*anypb.Any{info}}))(t)
	return hex.EncodeToString(b)
}

// service is the service of the servers in other languages.
const service = "/interop.v1.OrderService/"

// TestServersInOtherLanguages plays the same script to servers in each language, and counts the handlers that ran.
func TestServersInOtherLanguages(t *testing.T) {
	required(t)
	const (
		down  = `{"code": 14}`
		retry = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.001s, maxBackoff: 0.001s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]`
		plain = retry + `}`
	)
	info := `{"code": 14, "details": "` + details(t, 150*time.Millisecond) + `"}`
	rows := []struct {
		name     string
		method   string
		script   string
		policy   string
		attempts int
		answer   string // the client's result
		atLeast  time.Duration
	}{
		{"two failures", "GetOrder", "[" + down + "," + down + ", {}]", plain, 3, "1 OK", 0},
		{"failures without end", "GetOrder", "[" + down + "]", plain, 4, "0 Unavailable", 0},
		{"another code", "GetOrder", `[{"code": 9}]`, plain, 1, "0 FailedPrecondition", 0},
		{"headers, then a failure", "GetOrder", `[{"code": 14, "headers": true}, {}]`, plain, 2, "1 OK", 0},
		{"the same, `commitOn: HEADERS`", "GetOrder", `[{"code": 14, "headers": true}, {}]`, retry + `, commitOn: HEADERS}`, 1, "0 Unavailable", 0},
		{"pushback of 150 ms", "GetOrder", `[{"code": 14, "trailer": [["grpc-retry-pushback-ms", "150"]]}, {}]`, plain, 2, "1 OK", 150 * time.Millisecond},
		{"pushback -1", "GetOrder", `[{"code": 14, "trailer": [["grpc-retry-pushback-ms", "-1"]]}, {}]`, plain, 1, "0 Unavailable", 0},
		{"pushback abc", "GetOrder", `[{"code": 14, "trailer": [["grpc-retry-pushback-ms", "abc"]]}, {}]`, plain, 1, "0 Unavailable", 0},
		{"two pushbacks", "GetOrder", `[{"code": 14, "trailer": [["grpc-retry-pushback-ms", "1"], ["grpc-retry-pushback-ms", "2"]]}, {}]`, plain, 1, "0 Unavailable", 0},
		{"RetryInfo of 150 ms", "GetOrder", "[" + info + ", {}]", plain, 2, "1 OK", 150 * time.Millisecond},
		{"retry-after of 1 s", "GetOrder", `[{"code": 14, "trailer": [["retry-after", "1"]]}, {}]`, plain, 2, "1 OK", time.Second},
		{"a slow attempt, hedged", "GetOrder", `[{"delay": 3000}, {}]`, retry + `, perAttemptTimeout: 0.1s}`, 2, "1 OK", 100 * time.Millisecond},
		{"hedging", "GetOrder", `[{"delay": 3000}, {}]`, `hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}`, 2, "1 OK", 100 * time.Millisecond},
		{"server stream, two failures", "WatchOrders", "[" + down + "," + down + `, {"messages": 3}]`, plain, 3, "3 OK", 0},
		{"server stream, cut after two messages", "WatchOrders", `[{"messages": 2, "code": 14}, {"messages": 3}]`, plain, 1, "2 Unavailable", 0},
		{"the same, resumed", "WatchOrders resumed", `[{"messages": 2, "code": 14}, {"messages": 3}]`, plain, 2, "5 OK", 0},
		{"client stream, a failure", "ImportOrders", "[" + down + ", {}]", plain, 2, "1 OK", 0},
		{"bidirectional stream, a failure", "Chat", "[" + down + `, {"messages": 1}]`, plain, 2, "3 OK", 0},
	}
	// Servers that differ: Python's sends one of two pushbacks, so the call is retried.
	differs := map[string]map[string]string{"Python": {"two pushbacks": "2 attempts, 1 OK"}}
	shown := table{header: []string{"script", "attempts, answer"}}
	for _, l := range languages {
		l.uses(t)
		t.Run(l.name, func(t *testing.T) {
			s := l.serve(t)
			for i, row := range rows {
				t.Run(row.name, func(t *testing.T) {
					method, _, resumed := strings.Cut(row.method, " ")
					r := retrier(t, fmt.Sprintf("methodConfig: [{name: [{service: interop.v1.OrderService, method: %s}], %s}]", method, row.policy))
					conn := dial(t, address(s.port), r.DialOptions()...)
					request := fmt.Sprintf("request number %03d", i)
					ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-script", row.script), 10*time.Second)
					defer cancel()
					if strings.HasPrefix(row.policy, "hedgingPolicy") {
						quick := metadata.AppendToOutgoingContext(t.Context(), "x-script", "[{}]")
						for range untilKnown {
							talk(quick, t, conn, method, "a request before", resumed)
						}
					}
					begin := time.Now()
					answer := talk(ctx, t, conn, method, request, resumed)
					took := time.Since(begin)
					await(t, 5*time.Second, fmt.Sprintf("%d attempts", row.attempts), func() bool { return s.attempts(t, method, request) >= row.attempts })
					want := fmt.Sprintf("%d attempts, %s", row.attempts, row.answer)
					if other := differs[l.name][row.name]; other != "" {
						want = other
					}
					got := fmt.Sprintf("%d attempts, %s", s.attempts(t, method, request), answer)
					if got != want || took < row.atLeast || row.atLeast > 0 && took > row.atLeast+2500*time.Millisecond {
						t.Errorf("%s, after %v; want %s, after %v", got, took, want, row.atLeast)
					}
				})
			}
		})
	}
	for _, row := range rows {
		cell := []string{fmt.Sprintf("%d, %s", row.attempts, row.answer)}
		for _, l := range languages {
			if other := differs[l.name][row.name]; other != "" {
				cell = append(cell, fmt.Sprintf("(%s: %s)", l.name, other))
			}
		}
		shown.rows = append(shown.rows, []string{row.name, strings.Join(cell, " ")})
	}
	evidence.add(30, section{title: "Servers in Python and Node", text: serversText, tables: []table{shown}})
}

const serversText = `
Each row is true of both servers. It shows what the server does with the attempts of a call, how many of them its handlers saw, and the
messages and the code that the application received.`

// attempts returns how often handlers ran for a request, which a client's stream contains three times: an import sees all at
// once, a chat one after the other, with all of them in the last attempt.
func (s *foreignServer) attempts(t *testing.T, method, request string) int {
	t.Helper()
	n := s.counts(t)[request]
	switch method {
	case "ImportOrders":
		return n / 3
	case "Chat":
		return n - 2
	default:
		return n
	}
}

// talk makes a call of the method's kind, and returns the messages and the code.
func talk(ctx context.Context, t *testing.T, conn *grpc.ClientConn, method, request string, resumed bool) string {
	t.Helper()
	m := wrapperspb.String(request)
	if method == "GetOrder" || method == "CreateOrder" {
		err := conn.Invoke(ctx, service+method, m, new(wrapperspb.StringValue))
		n := 0
		if err == nil {
			n = 1
		}
		return fmt.Sprintf("%d %v", n, status.Code(err))
	}
	var opts []grpc.CallOption
	if resumed {
		opts = append(opts, interceptor.Resume(func(proto.Message) (proto.Message, bool) { return m, true }))
	}
	desc := &grpc.StreamDesc{ServerStreams: method != "ImportOrders", ClientStreams: method != "WatchOrders"}
	stream, err := conn.NewStream(ctx, desc, service+method, opts...)
	if err != nil {
		return fmt.Sprintf("0 %v", status.Code(err))
	}
	sent := 1
	if desc.ClientStreams {
		sent = 3
	}
	for range sent {
		if err := stream.SendMsg(m); err != nil {
			break // RecvMsg says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	for n := 0; ; n++ {
		switch err := stream.RecvMsg(new(wrapperspb.StringValue)); {
		case err == io.EOF:
			return fmt.Sprintf("%d OK", n)
		case err != nil:
			return fmt.Sprintf("%d %v", n, status.Code(err))
		case !desc.ServerStreams:
			return "1 OK"
		}
	}
}
