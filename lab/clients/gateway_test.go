// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	grpcgateway "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb/gw"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/testserver"
)

// TestGateway makes etcd's HTTP gateway call a failing server, with and without stagger.
func TestGateway(t *testing.T) {
	noLeaks(t)
	const get, put = "/etcdserverpb.KV/Range", "/etcdserverpb.KV/Put"
	kv := testserver.OK(&etcdserverpb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Key: []byte("k"), Value: []byte("v")}}, Count: 1}).
		Header(metadata.Pairs("place", "header")).Trailer(metadata.Pairs("place", "trailer"))
	for name, tc := range map[string]struct {
		path       string
		steps      []testserver.Step
		bare, ours string // status and requests
	}{
		"read":          {"range", []testserver.Step{kv}, "200 1", "200 1"},
		"read, bad":     {"range", []testserver.Step{testserver.Fail(codes.InvalidArgument, "no")}, "400 1", "400 1"},
		"read, a blip":  {"range", []testserver.Step{testserver.Fail(codes.Unavailable).Times(2), kv}, "503 1", "200 3"},
		"read, down":    {"range", []testserver.Step{testserver.Fail(codes.Unavailable, "down")}, "503 1", "503 4"},
		"write, a blip": {"put", []testserver.Step{testserver.Fail(codes.Unavailable), testserver.OK()}, "503 1", "503 1"},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(opts ...grpc.DialOption) (counted, answer string) {
				server := testserver.Start(t)
				server.On(get, tc.steps...)
				server.On(put, tc.steps...)
				mux := grpcgateway.NewServeMux()
				must.Do(t, gw.RegisterKVHandler(t.Context(), mux, server.Dial(t, opts...)))
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, httptest.NewRequestWithContext(within(t), http.MethodPost, "/v3/kv/"+tc.path, strings.NewReader(`{"key":"aw=="}`)))
				result := w.Result()
				body := must.Get(io.ReadAll(result.Body))(t)
				for _, name := range slices.Sorted(maps.Keys(result.Header)) {
					answer += fmt.Sprintln(name, result.Header[name])
				}
				return fmt.Sprint(result.StatusCode, server.Count(get)+server.Count(put)), answer + string(body)
			}
			bare, want := play(grpc.WithDisableRetry())
			ours, answer := play(retrier(t, names("etcdserverpb.KV", "Range")).DialOptions()...)
			if bare != tc.bare || ours != tc.ours {
				t.Errorf("status and requests %q, with stagger %q; want %q, %q", bare, ours, tc.bare, tc.ours)
			}
			if bare[:3] == ours[:3] && answer != want {
				t.Errorf("answered\n%s\nwithout stagger\n%s", answer, want)
			}
		})
	}
}
