// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// Call options as users write them, which embed gRPC's.
type (
	namedHeader struct {
		grpc.HeaderCallOption
		name string
	}
	byPointer struct{ *grpc.TrailerCallOption }
	anyOption struct {
		grpc.CallOption
		name string
	}
	marker struct {
		grpc.EmptyCallOption
		name string
	}
)

// targets are the destinations that gRPC writes to.
type targets struct {
	header, trailer metadata.MD
	peer            peer.Peer
}

// embeddings are options of users' own types, and pointers, that write to the targets.
func embeddings(to *targets) map[string]grpc.CallOption {
	header, trailer, from := grpc.HeaderCallOption{HeaderAddr: &to.header}, grpc.TrailerCallOption{TrailerAddr: &to.trailer}, grpc.PeerCallOption{PeerAddr: &to.peer}
	return map[string]grpc.CallOption{
		"header":                     namedHeader{header, "x"},
		"trailer/embedded pointer":   byPointer{&trailer},
		"trailer/pointer, interface": &anyOption{anyOption{&trailer, "y"}, "x"},
		"peer/interface":             anyOption{from, "x"},
		"peer, gRPC's by pointer":    &from,
	}
}

// String says whose header or trailer there is, and whether there is a peer.
func (to *targets) String() string {
	return fmt.Sprintf("%s%s %t", to.header["who"], to.trailer["who"], to.peer.Addr != nil)
}

// from marks what a step brings.
func from(who string, step testserver.Step) testserver.Step {
	return step.Header(metadata.Pairs("who", who)).Trailer(metadata.Pairs("who", who))
}

// An inner interceptor sees an attempt's own target in place of the caller's, and all other options as the caller has given them.
func TestAttemptOptions_InnerInterceptor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), retrier: mustNew(t, mustSet(t, config(plain())))}
		s.On(get, from("first", down()), from("second", text("")))
		var to targets
		var seen []string
		inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, req, reply, cc, opts...)
			for _, o := range opts {
				switch o := o.(type) {
				case grpc.HeaderCallOption:
					seen = append(seen, fmt.Sprint((*o.HeaderAddr)["who"], o.HeaderAddr == &to.header))
				case marker:
					seen = append(seen, o.name)
				}
			}
			return err
		}
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
		_, err := s.call(t.Context(), get, grpc.Header(&to.header), marker{name: "m"})
		if got := fmt.Sprint(seen); err != nil || got != "[m [first] false m [second] false]" || to.String() != "[second][] false" {
			t.Errorf("%v; an inner interceptor saw %s, the caller %s", err, got, &to)
		}
	})
}

// Attempts would share the target of an option that embeds gRPC's, or of a pointer to gRPC's. So calls with it have one attempt, which gets
// the option as it is, and there is one warning. With the race detector, this shows that no hedge writes to the target.
func TestEmbeddedTarget(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]string{
		"header":                     "[first][] false",
		"trailer/embedded pointer":   "[][first] false",
		"trailer/pointer, interface": "[][first] false",
		"peer/interface":             "[][] true",
		"peer, gRPC's by pointer":    "[][] true",
	} {
		for kind, c := range map[string]spec.Config{"retried": config(plain()), "hedged": hedged()} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					for range 2 {
						s.Reset()
						s.On(get, from("first", down().Delay(150*ms)))
						to := new(targets)
						_, err := s.call(t.Context(), get, embeddings(to)[name])
						if status.Code(err) != codes.Unavailable || s.Count(get) != 1 || to.String() != seen {
							t.Errorf("%v after %d attempts, %s; want one, and %s", err, s.Count(get), to, seen)
						}
					}
					to := new(targets)
					stream := s.open(t, t.Context(), serverStream, embeddings(to)[name])
					send(t, stream, "x")
					if _, err := receive(stream); status.Code(err) != codes.Unavailable || s.Count(get) != 2 || to.String() != seen {
						t.Errorf("%v after %d attempts, %s; want one, and %s", err, s.Count(get)-1, to, seen)
					}
					if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "doesn't embed grpc.EmptyCallOption") {
						t.Errorf("warned: %s", s.warnings)
					}
				})
			})
		}
	}
}

// Other types have the methods of an option that they embed. If that is grpc.EmptyCallOption, attempts may share it; if it is any other,
// calls have one attempt.
func TestUnknownOption(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		option grpc.CallOption
		sent   int
	}{
		"gRPC's":                         {grpc.WaitForReady(true), 3},
		"ours":                           {interceptor.MaxAttempts(3), 3},
		"does nothing":                   {marker{name: "x"}, 3},
		"does nothing, by pointer":       {&marker{name: "x"}, 3},
		"gRPC's, by pointer":             {&grpc.FailFastCallOption{}, 1},
		"embeds gRPC's":                  {anyOption{grpc.WaitForReady(true), "x"}, 1},
		"embeds ours":                    {anyOption{interceptor.Idempotent(), "x"}, 1},
		"embeds one that does nothing":   {struct{ marker }{marker{name: "x"}}, 1},
		"embeds a pointer to such a one": {struct{ *grpc.EmptyCallOption }{&grpc.EmptyCallOption{}}, 1},
	} {
		for kind, c := range map[string]spec.Config{"retried": config(plain()), "hedged": hedged()} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, down(), down(), text("a"))
					seen := 0
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
						func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
							if slices.Contains(opts, row.option) {
								seen++
							}
							return invoke(ctx, method, req, reply, cc, opts...)
						}))...)
					_, err := (scene{conn: conn}).call(t.Context(), get, row.option)
					if (err == nil) != (row.sent == 3) || s.Count(get) != row.sent || seen != row.sent {
						t.Errorf("%v after %d attempts, %d of which had the option; want %d", err, s.Count(get), seen, row.sent)
					}
					if warned := len(s.warnings) > 0; warned != (row.sent == 1) {
						t.Errorf("warnings %q", s.warnings)
					}
				})
			})
		}
	}
}

// Attempts get targets of their own for the options that write to the caller when an attempt ends, in their
// method after. A version of gRPC that has more of them needs more of us.
func TestAttemptOptions_AllOfGRPC(t *testing.T) {
	t.Parallel()
	file, _ := runtime.FuncForPC(reflect.ValueOf(grpc.Header).Pointer()).FileLine(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if _, missing := os.Stat(file); missing != nil || err != nil || len(files) == 0 {
		t.Skipf("the sources of gRPC are not at %s", file)
	}
	var writers []string
	for _, file := range files {
		tree, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "after" || len(f.Body.List) == 0 {
				continue
			}
			if receiver, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				writers = append(writers, receiver.Name)
			}
		}
	}
	slices.Sort(writers)
	if want := []string{"HeaderCallOption", "PeerCallOption", "TrailerCallOption"}; !slices.Equal(writers, want) {
		t.Errorf("options that write: %q; want %q", writers, want)
	}
}

// gRPC looks for options of this very type, so one that is embedded is never called.
func TestAttemptOptions_EmbeddedOnFinish(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), text(""))
		called := 0
		o := struct{ grpc.OnFinishCallOption }{grpc.OnFinishCallOption{OnFinish: func(error) { called++ }}}
		if _, err := s.call(t.Context(), get, o, interceptor.Disable()); err == nil || called != 0 {
			t.Errorf("gRPC: %v, called %d times", err, called)
		}
		s.Reset()
		s.On(get, text(""))
		if _, err := s.call(t.Context(), get, o); err != nil || called != 0 {
			t.Errorf("%v, called %d times; want 0, as gRPC", err, called)
		}
	})
}

func TestAttemptOptions_Allocations(t *testing.T) {
	unary := mustNew(t, fiftyMethods(t)).Unary()
	ctx, opts := t.Context(), []grpc.CallOption{grpc.StaticMethod(), marker{name: "m"}}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	call()
	if n := testing.AllocsPerRun(1000, call); n > successAllocates {
		t.Errorf("a call that succeeds at once allocates %v times; want %d", n, successAllocates)
	}
}

// An inner interceptor may answer from a cache, and leave gRPC running: its later reports must not reach another call.
func TestAttemptOptions_LeftRunning(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", from("left behind", text("")).Delay(time.Second))
		leave := true
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, _ any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if !leave {
					time.Sleep(2 * time.Second)
					return nil
				}
				ctx = context.WithoutCancel(ctx)
				go func() { _ = invoke(ctx, method, req, new(wrapperspb.StringValue), cc, opts...) }()
				return nil
			}))...)
		for range 10 { // sync.Pool forgets some under the race detector
			for _, leave = range []bool{true, false} {
				var trailer metadata.MD
				var p peer.Peer
				testkit.NoError(t, conn.Invoke(t.Context(), get, wrapperspb.String(""), new(wrapperspb.StringValue), grpc.Trailer(&trailer), grpc.Peer(&p)))
				if trailer != nil || p.Addr != nil {
					t.Errorf("a call that gRPC has not made has trailer %v and peer %v", trailer, p)
				}
			}
			time.Sleep(time.Minute)
		}
	})
}
