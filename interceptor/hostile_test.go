// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/testserver"
)

// Pushback always wins, and no answer of a server makes a client
// panic, wait for longer than the policy allows, or send more.
func TestHostile_Word(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config spec.Config
		stream bool
	}{
		"unary":                 {config(plain()), false},
		"stream":                {config(plain()), true},
		"stream with a timeout": {config(hasty()), true},
	} {
		for _, h := range floods() {
			t.Run(name+", "+h.name, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) { h.check(t, s, row.stream) })
			})
		}
	}
}

// check makes a call to the hostile server, and then one to see that the client is well.
func (h hostility) check(t *testing.T, s scene, stream bool) {
	t.Helper()
	call := func() error {
		if stream {
			return ask(t.Context(), s.conn, false)
		}
		_, err := s.call(t.Context(), get)
		return err
	}
	start := time.Now()
	s.On(get, h.step)
	if err := call(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %.200v; want the server's", err)
	}
	if n, took := s.Count(get), time.Since(start); n != h.attempts || took != h.elapsed {
		t.Errorf("%d attempts in %v; want %d in %v", n, took, h.attempts, h.elapsed)
	}
	s.On(get, text("well"))
	if err := call(); err != nil || s.retrier.State().Waiting.All() != 0 || s.retrier.Replayed() != 0 {
		t.Errorf("the next call ends with %v, %d calls wait, %d bytes are kept", err, s.retrier.State().Waiting.All(), s.retrier.Replayed())
	}
}

// hostility is a server's answer to every attempt, with the required result.
type hostility struct {
	name     string
	step     testserver.Step
	attempts int
	elapsed  time.Duration
}

const unsaid = 700 * ms // of backoffs, when the pushback is ignored

// floods are answers that are too large.
func floods() []hostility {
	keys := metadata.MD{}
	for i := range 1000 {
		keys.Append(fmt.Sprintf("key-%d", i), "value")
	}
	garbled := &spb.Status{Code: int32(codes.Unavailable), Details: []*anypb.Any{{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: []byte{0xff}}}}
	large := metadata.Pairs("large", strings.Repeat("x", 64<<10))
	return []hostility{
		{"a thousand trailers", down().Trailer(keys), 4, unsaid},
		{"a trailer of 64 KiB", down().Trailer(large), 4, unsaid},
		{"a thousand headers", down().Header(keys), 4, unsaid},
		{"a header of 64 KiB, and nonsense", down().Header(large).Header(metadata.Pairs("retry-after", "soon", "grpc-retry-pushback-ms", "-1")), 4, unsaid},
		{"a message of 64 KiB", testserver.Fail(codes.Unavailable, strings.Repeat("\x00\xff%", 7_000)), 4, unsaid},
		{"all at once", testserver.FailStatus(status.FromProto(garbled)).Trailer(keys).Trailer(large).Trailer(metadata.Pairs("retry-after", "soon")).Pushback("soon"), 1, 0},
	}
}

// Raw answers that no gRPC server would send.
func TestHostile_Bytes(t *testing.T) {
	t.Parallel()
	unavailable := func(pairs ...string) []string { return append([]string{"grpc-status", "14"}, pairs...) }
	disagreeing := base64.RawStdEncoding.EncodeToString([]byte("\x08\x05")) // says NOT_FOUND
	for name, row := range map[string]struct {
		trailers []string
		code     codes.Code
		attempts int
		elapsed  time.Duration
	}{
		"nothing hostile":             {unavailable(), codes.Unavailable, 4, unsaid},
		"no status":                   {nil, codes.Unknown, 1, 0},
		"a status of no meaning":      {[]string{"grpc-status", "99"}, codes.Code(99), 1, 0},
		"a status beyond 32 bits":     {[]string{"grpc-status", "4294967310"}, codes.Unknown, 1, 0},
		"a negative status":           {[]string{"grpc-status", "-14"}, codes.Code(1<<32 - 14), 1, 0},
		"a status that is no number":  {[]string{"grpc-status", "UNAVAILABLE"}, codes.Unknown, 1, 0},
		"details that are not base64": {unavailable("grpc-status-details-bin", "!!!"), codes.Internal, 1, 0},
		"details that are no message": {unavailable("grpc-status-details-bin", "////"), codes.Unavailable, 4, unsaid},
		"details of another code":     {unavailable("grpc-status-details-bin", disagreeing), codes.Internal, 1, 0},
		"pushback in two fields":      {unavailable("grpc-retry-pushback-ms", "5", "grpc-retry-pushback-ms", "5"), codes.Unavailable, 1, 0},
		"pushback in one, with comma": {unavailable("grpc-retry-pushback-ms", "5, 5"), codes.Unavailable, 1, 0},
		"pushback of other digits":    {unavailable("grpc-retry-pushback-ms", "٥"), codes.Unavailable, 1, 0},
		"pushback with control bytes": {unavailable("grpc-retry-pushback-ms", "5\x00"), codes.Internal, 1, 0},
		"a message that is not UTF-8": {unavailable("grpc-message", "%ff%zz%"), codes.Unavailable, 4, unsaid},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					streams, err := hearFrom(t, row.trailers, stream)
					if status.Code(err) != row.code || streams != row.attempts || time.Since(start) != row.elapsed {
						t.Errorf("%v after %d attempts in %v; want %v after %d in %v", err, streams, time.Since(start), row.code, row.attempts, row.elapsed)
					}
				})
			})
		}
	}
}

// hearFrom makes a call to a server that answers every stream with these trailers, and nothing else, and counts its attempts:
// gRPC's own server would not say such things.
func hearFrom(t *testing.T, trailers []string, stream bool) (streams int, err error) {
	t.Helper()
	conn := speaking(t, mustNew(t, mustSet(t, config(plain())), quiet), func(f *http2.Framer, frame http2.Frame) {
		if frame, ok := frame.(*http2.HeadersFrame); ok {
			streams++
			writeHeaders(f, frame.StreamID, true, append([]string{":status", "200", "content-type", "application/grpc"}, trailers...)...)
		}
	})
	err = ask(t.Context(), conn, !stream)
	return streams, err
}
