// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/stagger-go/stagger/testserver"
)

// letters is a codec of messages that are no pointers, in as many pieces as they have letters.
type letters struct{}

func (letters) Name() string { return "letters" }

func (letters) Marshal(v any) (data mem.BufferSlice, err error) {
	for _, letter := range v.(string) {
		data = append(data, mem.SliceBuffer(string(letter)))
	}
	return data, nil
}

func (letters) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*string) = string(data.Materialize())
	return nil
}

func TestMessagesThatAreNoPointersAreReplayed(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Play(testserver.Receive(4)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.ForceCodecV2(letters{}))
		for _, text := range []string{"one", "", "one", "four"} {
			if err := stream.SendMsg(text); err != nil {
				t.Fatal(err)
			}
		}
		_ = stream.CloseSend()
		var got []string
		var text string
		for stream.RecvMsg(&text) == nil {
			got = append(got, text)
		}
		if fmt.Sprintf("%q", got) != `["one" "" "one" "four"]` || s.Count(get) != 2 {
			t.Errorf("%q in %d attempts", got, s.Count(get))
		}
	})
}

// pair is a message of a codec, and what is in it is another one, at the same address.
type pair struct{ inner inner }

type inner struct{ text string }

type pairs struct{ letters }

func (pairs) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *pair:
		return mem.BufferSlice{mem.SliceBuffer("whole " + v.inner.text)}, nil
	case *inner:
		return mem.BufferSlice{mem.SliceBuffer("part " + v.text)}, nil
	}
	return nil, fmt.Errorf("%T", v)
}

func (pairs) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *pair:
		v.inner.text = strings.TrimPrefix(string(data.Materialize()), "whole ")
	case *string:
		*v = string(data.Materialize())
	}
	return nil
}

// unwrapper sends what is in a message.
type unwrapper struct{ grpc.ClientStream }

func (u unwrapper) SendMsg(m any) error { return u.ClientStream.SendMsg(&m.(*pair).inner) }

func TestAMessageIsNotTakenForItsFirstField(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.inside(t, func(n int, stream grpc.ClientStream) grpc.ClientStream {
			if n == 1 {
				return unwrapper{stream}
			}
			return stream
		})
		s.On(get, testserver.Play(testserver.Receive(1)).Then(down()), testserver.Play(testserver.EchoAll()))
		stream := s.open(t, t.Context(), bidiStream, grpc.ForceCodecV2(pairs{}))
		if err := stream.SendMsg(&pair{inner{"a"}}); err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
		var text string
		if err := stream.RecvMsg(&text); err != nil || text != "whole a" || string(s.Attempts()[0].Requests[0]) != "part a" {
			t.Errorf("%q, %v; the first attempt heard %q", text, err, s.Attempts()[0].Requests)
		}
	})
}
