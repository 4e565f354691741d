// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/testserver"
)

func TestDrop(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Drop().Times(1), testserver.OK())
		s.On(list, testserver.Hang())
		beside := make(chan answer, 1)
		go func() { beside <- s.call(t.Context(), list) }()
		synctest.Wait()
		wantCode(t, s.call(t.Context(), get), codes.Unavailable)
		wantCode(t, <-beside, codes.Unavailable)
		wantCode(t, s.call(t.Context(), get), codes.OK)
		if got := s.Attempts()[2].Conn; got != 2 {
			t.Errorf("the third call came on connection %d; want a new one, 2", got)
		}
	})
}

func TestCutOfUnaryCall(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.Cut().Times(1), testserver.OK())
		a := s.call(t.Context(), get)
		wantCode(t, a, codes.Unavailable)
		if a.elapsed != 0 {
			t.Errorf("cut after %v; want at once", a.elapsed)
		}
		wantCode(t, s.call(t.Context(), get), codes.OK)
		if got := s.Attempts()[1].Conn; got != 2 {
			t.Errorf("the second call came on connection %d; want a new one, 2", got)
		}
	})
}

func TestDropAfterHeadersAndMessages(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		s.On(get, testserver.OK(wrapperspb.String("one"), wrapperspb.String("two")).Header(metadata.Pairs("shard", "7")).Then(testserver.Drop()))
		start := time.Now()
		for range 20 {
			stream, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, get, grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			got, err := drain(t, stream)
			wantText(t, "messages", got, "one two ")
			wantCode(t, answer{err: err}, codes.Unavailable)
			if header, _ := stream.Header(); len(header["shard"]) != 1 {
				t.Errorf("headers %v; want the step's", header)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v; want no time", took)
		}
	})
}

// drain sends one request and receives until the end.
func drain(t *testing.T, stream grpc.ClientStream) (string, error) {
	t.Helper()
	if err := stream.SendMsg(wrapperspb.String("request")); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for {
		var m wrapperspb.StringValue
		if err := stream.RecvMsg(&m); err != nil {
			return got, err
		}
		got += m.GetValue() + " "
	}
}

func TestOKOfEmptyClientStream(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		stream, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, list)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(&wrapperspb.StringValue{}); err != nil {
			t.Error(err)
		}
		if got := s.Attempts()[0].Requests; len(got) > 0 {
			t.Errorf("recorded request %q; want none", got)
		}
	})
}

func TestStepIsAValue(t *testing.T) {
	stage(t, func(t *testing.T, s scene) {
		plain := testserver.Fail(codes.Aborted).Trailer(metadata.Pairs("a", "1"))
		one, two := plain.Pushback("1"), plain.Pushback("2").Delay(time.Second).RetryInfo(time.Second)
		s.On(get, one, two, plain)
		wantText(t, "first", s.call(t.Context(), get).trailer.Get(pushback)[0], "1")
		wantText(t, "second", s.call(t.Context(), get).trailer.Get(pushback)[0], "2")
		a := s.call(t.Context(), get)
		if len(a.trailer.Get(pushback)) != 0 || a.elapsed != 0 || len(status.Convert(a.err).Details()) != 0 {
			t.Errorf("the original step has changed: %v, %v, %v", a.trailer, a.elapsed, a.err)
		}

		three := raw("", "", "")
		more := func(m string) testserver.Step {
			return three.RawReplies([]byte(textOf(m)))
		}
		four, _ := more("mine"), more("another's")
		s.On(list, four)
		stream, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, list)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := drain(t, stream)
		wantText(t, "messages", got, "   mine ")
	})
}
