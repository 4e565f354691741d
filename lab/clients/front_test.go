// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/testkit"
)

// front is a proxy before a real server: it forwards and counts every request, and fails requests on demand.
type front struct {
	target string
	conn   *grpc.ClientConn

	mu       sync.Mutex
	down     string         // method whose requests
	with     codes.Code     // code of these failures
	lose     map[string]int // number of answers of a method to drop
	count    map[string]int // requests of each method
	served   map[string]int // requests that the server answered with OK
	metadata map[string]string
}

// newFront starts a front before the server at an address. It stops at the end of the test.
func newFront(t *testing.T, address string) *front {
	t.Helper()
	conn := testkit.Must(grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(64<<20))))(t)
	lis := listen(t)
	f := &front{
		target: lis.Addr().String(), conn: conn,
		lose: map[string]int{}, count: map[string]int{}, served: map[string]int{}, metadata: map[string]string{},
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(f.serve), grpc.MaxRecvMsgSize(64<<20))
	go func() { _ = server.Serve(lis) }() // it ends by Stop
	t.Cleanup(func() {
		server.Stop()
		conn.Close()
	})
	return f
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	return testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
}

// fail makes a method fail until heal is called.
func (f *front) fail(method string, with codes.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.with = method, with
}

func (f *front) heal() { f.fail("", codes.OK) }

// loseNext drops the next answer of a method, after the server has processed the request.
func (f *front) loseNext(method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose[method]++
}

// requests returns the requests of a method, and how many of them the server answered without error.
func (f *front) requests(method string) (all, served int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[method], f.served[method]
}

// seen returns the metadata keys of each method.
func (f *front) seen() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.metadata)
}

// admit counts a request.
func (f *front) admit(ctx context.Context, method string) (lose bool, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	keys := slices.Sorted(maps.Keys(md))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[method]++
	f.metadata[method] = strings.Join(keys, " ")
	if method == f.down {
		return false, status.Error(f.with, "the service is down")
	}
	if f.lose[method] > 0 {
		f.lose[method]--
		return true, nil
	}
	return false, nil
}

func (f *front) serve(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	lose, err := f.admit(in.Context(), method)
	if err != nil {
		return err
	}
	md, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), md))
	defer cancel()
	out, err := f.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var message []byte
			if in.RecvMsg(&message) != nil {
				_ = out.CloseSend() // never fails
				return
			}
			if out.SendMsg(&message) != nil {
				return
			}
		}
	}()
	err = f.answer(in, out, lose)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	f.served[method]++
	if lose {
		return status.Error(codes.Unavailable, "the answer is lost")
	}
	return nil
}

// answer forwards the server's answer, or drops it.
func (f *front) answer(in grpc.ServerStream, out grpc.ClientStream, lose bool) error {
	header, err := out.Header()
	if err == nil && !lose {
		if err := in.SendHeader(header); err != nil {
			return err
		}
	}
	for {
		var message []byte
		err := out.RecvMsg(&message)
		switch {
		case errors.Is(err, io.EOF):
			in.SetTrailer(out.Trailer())
			return nil
		case err != nil:
			in.SetTrailer(out.Trailer())
			return err
		case lose:
		default:
			if err := in.SendMsg(&message); err != nil {
				return err
			}
		}
	}
}

// raw is a codec that leaves messages unchanged.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (raw) Name() string { return "proto" }
