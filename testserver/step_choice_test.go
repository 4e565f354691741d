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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

func TestRandomRepeats(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		draw := func(seed uint64, method string) string {
			s.On(method, testserver.Random(seed, 0.5, testserver.Fail(codes.Unavailable)))
			return s.codesOf(t, method, 64)
		}
		first := draw(1, get)
		wantText(t, "the same seed", draw(1, get), first)
		if draw(2, get) == first {
			t.Error("another seed gave the same outcomes")
		}
		if draw(1, list) == first {
			t.Error("another method gave the same outcomes")
		}
	})
}

func TestFunc(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			if a.Number < 3 || len(a.Metadata.Get("token")) == 0 {
				return testserver.Fail(codes.Unauthenticated)
			}
			return raw(string(a.Requests[0]))
		}).Delay(time.Second))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "token", "x")
		wantCode(t, s.call(ctx, get), codes.Unauthenticated)
		wantCode(t, s.call(ctx, get), codes.Unauthenticated)
		wantCode(t, s.call(t.Context(), get), codes.Unauthenticated)
		a := s.call(ctx, get)
		wantText(t, "reply", a.reply, "request")
		if a.elapsed != time.Second {
			t.Errorf("answered after %v; want what stands around Func to count too", a.elapsed)
		}
	}, testserver.Keep(0)) // a Func sees metadata and request all the same
}

func TestFuncReturnsImpossibleStep(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			return testserver.OK(wrapperspb.String("pong")).Times(-1)
		}))
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.Internal)
		if want := "Times(-1): want at least 1"; !strings.Contains(a.err.Error(), want) {
			t.Errorf("error %v; want %q", a.err, want)
		}
	})
}
