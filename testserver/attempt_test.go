// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

func TestAttemptIsRecordedInFull(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Aborted).Delay(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ctx = metadata.AppendToOutgoingContext(ctx, "grpc-previous-rpc-attempts", "2")
		start := time.Now()
		_ = s.call(ctx, get)
		_ = s.call(t.Context(), get)

		list := s.Attempts()
		if len(list) != 2 {
			t.Fatalf("%d attempts; want 2", len(list))
		}
		a := list[0]
		wantText(t, "method", a.Method, get)
		wantText(t, "request", string(a.Requests[0]), "\x0a\x07request")
		wantText(t, "metadata", a.Metadata.Get("grpc-previous-rpc-attempts")[0], "2")
		if a.Number != 1 || a.Conn != 1 || !a.Time.Equal(start) || a.Timeout != 10*time.Second {
			t.Errorf("recorded %+v; want number 1, connection 1, at %v, with 10s left", a, start)
		}
		if a.Code != codes.Aborted || a.Cancelled || a.End.Sub(start) != time.Second {
			t.Errorf("recorded %+v; want it Aborted after 1s", a)
		}
		if b := list[1]; b.Number != 2 || b.Timeout != 0 || b.Time.Sub(start) != time.Second {
			t.Errorf("recorded %+v; want number 2, without a deadline, 1s later", b)
		}
	})
}

func TestCount(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		for _, method := range []string{get, get, list, pay} {
			_ = s.call(t.Context(), method)
		}
		for pattern, want := range map[string]int{get: 2, list: 1, "/acme.orders.v1.OrderService/*": 3, "*": 4, "/x/Y": 0} {
			if got := s.Count(pattern); got != want {
				t.Errorf("Count(%q) = %d; want %d", pattern, got, want)
			}
		}
	})
}

func TestKeep(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		for n := 1; n <= 10; n++ {
			_ = s.call(t.Context(), get)
			list := s.Attempts()
			if len(list) != min(n, 3) || list[len(list)-1].Number != n || list[0].Number != max(1, n-2) {
				t.Fatalf("after %d attempts %d are kept, from %d", n, len(list), list[0].Number)
			}
		}
		if got := s.Count(get); got != 10 {
			t.Errorf("counted %d; want all 10", got)
		}
	}, testserver.Keep(3))
}

func TestNoRecordCounts(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		_ = s.codesOf(t, get, 3)
		if s.Count(get) != 3 || len(s.Attempts()) != 0 {
			t.Errorf("counted %d, kept %d; want 3 and none", s.Count(get), len(s.Attempts()))
		}
	}, testserver.Keep(0))
}

// Requests, metadata and names of methods fill the record up to its bound in bytes: the oldest attempts have none then.
func TestRecordIsBounded(t *testing.T) {
	testkit.Long(t)
	stage(t, func(t *testing.T, s scene) {
		const requests, mib = 70, 1 << 20
		ctx := metadata.AppendToOutgoingContext(t.Context(), "large", strings.Repeat("y", mib))
		for range requests {
			if err := s.conn.Invoke(ctx, get, text(strings.Repeat("x", mib)), text("")); err != nil {
				t.Fatal(err)
			}
		}
		list, size := s.Attempts(), 0
		for i, a := range list {
			size += len(strings.Join(a.Metadata["large"], ""))
			for _, b := range a.Requests {
				size += len(b)
			}
			if last := len(a.Requests) == 1 && len(a.Metadata) > 0; last != (i >= requests-31) {
				t.Errorf("attempt %d of %d: %d requests, %d metadata", i, requests, len(a.Requests), len(a.Metadata))
			}
		}
		if len(list) != requests || size > 64*mib || s.Count(get) != requests {
			t.Errorf("%d attempts with %d bytes; want all, and at most 64 MiB", len(list), size)
		}
		long := "/acme.orders.v1.OrderService/" + strings.Repeat("x", 1000)
		_ = s.call(t.Context(), long)
		if got := s.Attempts()[requests].Method; got != long[:256] {
			t.Errorf("a name of %d bytes is kept; want 256", len(got))
		}
	})
}
