// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/policy"
)

// TestProxyAnswers has what proxies say in a backend's place; docs/proxies.md has the same table. Of an answer
// that is not gRPC's, no header comes through, retry-after neither.
func TestProxyAnswers(t *testing.T) {
	html := func(code string) func(f *http2.Framer, id uint32) {
		return func(f *http2.Framer, id uint32) {
			writeHeaders(f, id, true, ":status", code, "content-type", "text/html", "retry-after", "7")
		}
	}
	reset := func(code http2.ErrCode) func(f *http2.Framer, id uint32) {
		return func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, code) }
	}
	page, err := os.ReadFile("../docs/proxies.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		answer func(f *http2.Framer, id uint32)
		code   codes.Code
		told   string // of retry-after
	}{
		"400":   {html("400"), codes.Internal, ""},
		"401":   {html("401"), codes.Unauthenticated, ""},
		"403":   {html("403"), codes.PermissionDenied, ""},
		"404":   {html("404"), codes.Unimplemented, ""},
		"413":   {html("413"), codes.Unknown, ""},
		"429":   {html("429"), codes.Unavailable, ""},
		"500":   {html("500"), codes.Unknown, ""},
		"502":   {html("502"), codes.Unavailable, ""},
		"503":   {html("503"), codes.Unavailable, ""},
		"504":   {html("504"), codes.Unavailable, ""},
		"reset": {reset(http2.ErrCodeInternal), codes.Internal, ""},
		"calm":  {reset(http2.ErrCodeEnhanceYourCalm), codes.ResourceExhausted, ""},
		"flow":  {reset(http2.ErrCodeFlowControl), codes.ResourceExhausted, ""},
		"gone":  {reset(http2.ErrCodeCancel), codes.Canceled, ""},
		"weak":  {reset(http2.ErrCodeInadequateSecurity), codes.PermissionDenied, ""},
		"in gRPC's form": {func(f *http2.Framer, id uint32) {
			writeHeaders(f, id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "14", "retry-after", "7")
		}, codes.Unavailable, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, numbered := strconv.Atoi(name); numbered == nil && !tableSays(string(page), name, policy.CodeName(row.code)) {
				t.Errorf("docs/proxies.md does not say that %s becomes %s", name, policy.CodeName(row.code))
			}
			synctest.Test(t, func(t *testing.T) {
				lis := bufconn.Listen(1 << 16)
				defer lis.Close()
				served := make(chan struct{})
				go func() {
					defer close(served)
					serveFrames(lis, func(f *http2.Framer, id uint32, _ int) { row.answer(f, id) })
				}()
				retrier := mustNew(t, mustSet(t, config(plain())))
				conn, err := grpc.NewClient("passthrough:///proxy", append(retrier.DialOptions(),
					grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...)
				if err != nil {
					t.Fatal(err)
				}
				var header, trailer metadata.MD
				began := time.Now()
				err = conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
				if status.Code(err) != row.code {
					t.Errorf("%v; want %v", err, row.code)
				}
				if told := strings.Join(append(header.Get("retry-after"), trailer.Get("retry-after")...), ""); told != row.told {
					t.Errorf("retry-after %q; want %q", told, row.told)
				}
				if waited := time.Since(began) >= 7*time.Second; waited != (row.told != "") {
					t.Errorf("the call took %v", time.Since(began))
				}
				_ = conn.Close()
				<-served
			})
		})
	}
}

// tableSays reports whether a row of the page's tables has both.
func tableSays(page, status, code string) bool {
	return slices.ContainsFunc(strings.Split(page, "\n"), func(line string) bool {
		cells := strings.Split(line, "|")
		return len(cells) > 2 && strings.Contains(cells[1], status) && strings.Contains(cells[2], code)
	})
}
