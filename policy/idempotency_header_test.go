// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/header"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

// TestIdempotencyHeadersArrive sends a key in every header whose name stands in the code of gRPC's transport or of Go's HTTP/2 server,
// and in some others. Each server must get the key from every header that a policy accepts. If a new version of gRPC drops
// another header, add it to header.Lost.
func TestIdempotencyHeadersArrive(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	servers := keyServers(t)
	candidates := slices.Concat(namesInCode(t), []string{
		"", "idempotency-key", "x-request-id", "a", "a.b_c-1", "authorization", "cookie", "priority", "http2-settings", "baggage", "traceparent",
		"grpc-key", "grpc-", "key-bin", "-bin", ":key", "Idempotency-Key", "User-Agent",
		"a key", "a:key", "a/key", "schlüssel", "key\n", "key\x00", "“key”",
	})
	arrived := 0
	for _, name := range candidates {
		_, err := compiled.NewPolicy(spec.Policy{IdempotencyKey: name})
		if name != "" && (err == nil) != (header.Unfit(name) == "") {
			t.Errorf("%q: a policy returns %v", name, err)
		}
		for server, send := range servers {
			for _, key := range []string{"K2XJ4QZ7", "7"} {
				got, failed := send(t.Context(), name, key)
				switch lost := failed != nil || got != key; {
				case err == nil && name != "" && lost:
					t.Errorf("%q: a policy accepts it, but a %s server gets %q instead of %q, %v", name, server, got, key, failed)
				case !lost:
					arrived++
				}
			}
		}
	}
	if len(candidates) < 200 || arrived < 200 {
		t.Errorf("%d keys of %d candidates have arrived; want many of each", arrived, len(candidates))
	}
	for _, name := range header.Lost {
		got, lost := map[string]string{}, false
		for server, send := range servers {
			for _, key := range []string{"K2XJ4QZ7", "7"} {
				value, err := send(t.Context(), name, key)
				got[server], lost = value, lost || err != nil || value != key
			}
		}
		if !lost {
			t.Errorf("%q: a policy refuses it, but all servers get a key in it: %v", name, got)
		}
	}
}

// keyServers returns, for each kind of server, a function that makes a call with a header, and returns what the server got in it.
func keyServers(t *testing.T) map[string]func(ctx context.Context, name, key string) (string, error) {
	t.Helper()
	servers := map[string]func(context.Context, string, string) (string, error){}
	for kind, serve := range map[string]func(*grpc.Server, net.Listener) (stop func()){
		"gRPC": func(s *grpc.Server, l net.Listener) func() {
			go func() { _ = s.Serve(l) }()
			return s.Stop
		},
		"net/http": func(s *grpc.Server, l net.Listener) func() {
			h := &http.Server{Handler: s, Protocols: new(http.Protocols)}
			h.Protocols.SetUnencryptedHTTP2(true)
			go func() { _ = h.Serve(l) }()
			return func() { _, _ = h.Close(), l.Close(); s.Stop() }
		},
	} {
		echo := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			var name wrapperspb.StringValue
			if err := stream.RecvMsg(&name); err != nil {
				return err
			}
			md, _ := metadata.FromIncomingContext(stream.Context())
			return stream.SendMsg(wrapperspb.String(strings.Join(md.Get(name.GetValue()), " and ")))
		}))
		l := bufconn.Listen(1 << 16)
		conn := testkit.Must(grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })))(t)
		stop := serve(echo, l)
		t.Cleanup(func() { testkit.NoError(t, conn.Close()); stop() })
		servers[kind] = func(ctx context.Context, name, key string) (string, error) {
			var got wrapperspb.StringValue
			ctx = metadata.NewOutgoingContext(ctx, metadata.MD{name: {key}})
			err := conn.Invoke(ctx, "/a.B/C", wrapperspb.String(strings.ToValidUTF8(name, "")), &got)
			return got.GetValue(), err
		}
	}
	return servers
}

// namesInCode returns the strings in the code of gRPC and of net/http that may be metadata keys, in lower case.
func namesInCode(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for _, path := range []string{
		"google.golang.org/grpc", "google.golang.org/grpc/internal/transport", "google.golang.org/grpc/internal/metadata", "net/http",
	} {
		folder := testkit.Must(build.Import(path, ".", build.FindOnly))(t).Dir
		files := testkit.Must(filepath.Glob(filepath.Join(folder, "*.go")))(t)
		before := len(names)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			ast.Inspect(testkit.Must(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t), func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				text = strings.ToLower(text)
				if err == nil && len(text) < 40 && strings.Trim(text, ":"+header.Legal) == "" {
					names[text] = true
				}
				return true
			})
		}
		if len(names) == before && len(files) == 0 {
			t.Errorf("%s has no code in %s", path, folder)
		}
	}
	for _, name := range []string{"user-agent", "te", "grpc-timeout", "connection"} {
		if !names[name] {
			t.Errorf("%s is not found in the code", name)
		}
	}
	return slices.Sorted(maps.Keys(names))
}
