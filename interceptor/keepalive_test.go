// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/testserver"
)

// A server with gRPC's defaults does not mind the pings of a stream that is quiet for an hour; those that come each minute, it does.
func TestKeepalive_QuietStream(t *testing.T) {
	for name, row := range map[string]struct {
		options []grpc.DialOption
		cut     bool
	}{
		"as WithKeepalive sets it": {nil, false},
		"each minute":              {[]grpc.DialOption{grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := testserver.Start(t)
				server.On(get, moves.Play(moves.Send(wrapperspb.String("first")), moves.Pause(time.Hour), moves.Send(wrapperspb.String("second"))))
				r := mustNew(t, mustSet(t, config(plain())), quiet, interceptor.WithKeepalive())
				stream, err := server.Dial(t, append(r.DialOptions(), row.options...)...).NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, get)
				if err != nil {
					t.Fatal(err)
				}
				if err = errors.Join(stream.SendMsg(wrapperspb.String("order 7")), stream.CloseSend()); err != nil {
					t.Fatal(err)
				}
				n := 0
				for err == nil {
					if err = stream.RecvMsg(new(wrapperspb.StringValue)); err == nil {
						n++
					}
				}
				if cut := !errors.Is(err, io.EOF); cut != row.cut || !cut && n != 2 {
					t.Errorf("%d messages, then %v; want the stream to be cut: %v", n, err, row.cut)
				}
			})
		})
	}
}

// frozen is a network connection that carries nothing any more once it is frozen, and says nothing of that.
type frozen struct {
	net.Conn

	since chan struct{} // closed then
	done  chan struct{} // closed by Close
	once  sync.Once
}

func (f *frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	select {
	case <-f.since:
		<-f.done
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (f *frozen) Write(b []byte) (int, error) {
	select {
	case <-f.since:
		return len(b), nil
	default:
		return f.Conn.Write(b)
	}
}

func (f *frozen) Close() error {
	f.once.Do(func() { close(f.done) })
	return f.Conn.Close()
}

// A server that stops answering is noticed, however long that takes: 6 minutes and 20 seconds.
func TestKeepalive_DeadConnection(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]interceptor.Option{"with it": {interceptor.WithKeepalive()}, "without": nil} {
		synctest.Test(t, func(t *testing.T) {
			lis := bufconn.Listen(1 << 16)
			server := testserver.Start(t, testserver.Listener(lis))
			server.On(get, testserver.Hang())
			since := make(chan struct{})
			dial := func(ctx context.Context, _ string) (net.Conn, error) {
				conn, err := lis.DialContext(ctx)
				return &frozen{Conn: conn, since: since, done: make(chan struct{})}, err
			}
			r := mustNew(t, mustSet(t, config(plain())), append(options, quiet)...)
			conn := server.Dial(t, append(r.DialOptions(), grpc.WithContextDialer(dial))...)
			began := time.Now()
			time.AfterFunc(time.Second, func() { close(since) })
			time.AfterFunc(time.Hour, func() { _ = conn.Close() })
			err := conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue), interceptor.MaxAttempts(1))
			if took := time.Since(began); err == nil || (took < 7*time.Minute) != (options != nil) {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}
