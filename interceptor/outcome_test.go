// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	grpcbalancer "google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// picking is a picker that picks nothing, for the reason that stands in the context of the call, and counts how often
// it is asked.
type picking struct {
	err   error
	asked int
}

type pickingKey struct{}

func (*picking) Pick(info grpcbalancer.PickInfo) (grpcbalancer.PickResult, error) {
	p, _ := info.Ctx.Value(pickingKey{}).(*picking)
	p.asked++
	return grpcbalancer.PickResult{}, p.err
}

func (p *picking) Build(base.PickerBuildInfo) grpcbalancer.Picker { return p }

func init() { // gRPC's registry is for the start of a program
	grpcbalancer.Register(base.NewBalancerBuilder("picking", new(picking), base.Config{}))
}

// Picker errors without a peer: gRPC drops an RPC whose picker returns a status.
func TestUnsent(t *testing.T) {
	listed := plain()
	listed.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.Internal, codes.Unauthenticated}
	for name, row := range map[string]struct {
		err           error
		declared, not int // attempts of a method that was declared safe, and of another
		why           policy.Reason
	}{
		"unavailable":              {status.Error(codes.Unavailable, "no endpoint"), 4, 4, policy.ReasonAttemptsExhausted},
		"no status":                {errors.New("no endpoint"), 4, 4, policy.ReasonAttemptsExhausted},
		"another code":             {status.Error(codes.Unauthenticated, "no token"), 4, 1, policy.ReasonNotIdempotent},
		"a code that gRPC changes": {status.Error(codes.NotFound, "no cluster"), 4, 1, policy.ReasonNotIdempotent},
		"dropped by xDS":           {status.Error(codes.Unavailable, "RPC is dropped"), 1, 1, policy.ReasonNonRetryable},
		"circuit breaking":         {status.Error(codes.Unavailable, "max requests 1024 exceeded on service orders"), 1, 1, policy.ReasonNonRetryable},
		"dropped by grpclb":        {status.Error(codes.Unavailable, "request dropped by grpclb"), 1, 1, policy.ReasonNonRetryable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(listed), func(t *testing.T, s scene) {
				s.conn = s.Dial(t, append(s.retrier.DialOptions(),
					grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"picking": {}}]}`))...)
				for method, want := range map[string]int{get: row.declared, create: row.not} {
					p := &picking{err: row.err}
					_, err := s.call(context.WithValue(t.Context(), pickingKey{}, p), method)
					if p.asked != want || method == create && reasonOf(err) != row.why {
						t.Errorf("%s: %d attempts, %s; want %d, %s", method, p.asked, reasonOf(err), want, row.why)
					}
				}
				p := &picking{err: row.err}
				stream, err := s.conn.NewStream(context.WithValue(t.Context(), pickingKey{}, p), serverStream, create)
				if err == nil {
					err = stream.RecvMsg(nil)
				}
				if p.asked != row.not || reasonOf(err) != row.why {
					t.Errorf("stream: %d attempts, %s; want %d, %s", p.asked, reasonOf(err), row.not, row.why)
				}
			})
		})
	}
}

// gRPC's sources say with which texts pickers drop RPCs. A version that has others needs others here.
func TestOutcome_DropTexts(t *testing.T) {
	t.Parallel()
	drops := sourceTexts(t, `status\.(?:Error|Errorf|New|Newf)\(codes\.Unavailable, "([^"]*drop[^"]*)"`)
	if want := []string{"RPC is dropped", "request dropped by grpclb"}; !slices.Equal(drops, want) {
		t.Errorf("drops: %q; want %q", drops, want)
	}
	exceeded := sourceTexts(t, `Errorf\("([^"]*exceeded on service[^"]*)"`)
	if want := []string{"max requests %v exceeded on service %v"}; !slices.Equal(exceeded, want) {
		t.Errorf("circuit breaking: %q; want %q", exceeded, want)
	}
}

// sourceTexts is what the first group of a pattern finds in gRPC's sources.
func sourceTexts(t *testing.T, pattern string) (found []string) {
	t.Helper()
	file, _ := runtime.FuncForPC(reflect.ValueOf(grpc.Header).Pointer()).FileLine(0)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("the sources of gRPC are not at %s", file)
	}
	expression := regexp.MustCompile(pattern)
	testkit.NoError(t, filepath.WalkDir(filepath.Dir(file), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range expression.FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		return err
	}))
	slices.Sort(found)
	return found
}

// gRPC does not show interceptors the retry policies of an xDS server. DialOptions switch them off.
func TestUnsent_GRPCRetries(t *testing.T) {
	const hidden = "may get one from an xDS server"
	for name, row := range map[string]struct {
		scheme string
		known  bool // that gRPC does not retry
		want   int
		warn   string
	}{
		"xds":                {"xds", false, 1, hidden},
		"google-c2p":         {"google-c2p", false, 1, hidden},
		"in capital letters": {"XDS", false, 1, hidden},
		"another scheme":     {"static", false, 4, ""},
		"looks like xds":     {"xdsx", false, 4, ""},
		"xds, DialOptions":   {"xds", true, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := new(journal)
				retrier := mustNew(t, mustSet(t, impatient()), withJournal(j))
				j.warnings = nil
				r := manual.NewBuilderWithScheme(strings.ToLower(row.scheme))
				r.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "nowhere"}}})
				opts := []grpc.DialOption{
					grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("down") }),
				}
				if row.known {
					opts = append(opts, retrier.DialOptions()...)
				} else {
					opts = append(opts, grpc.WithUnaryInterceptor(retrier.Unary()), grpc.WithStreamInterceptor(retrier.Stream()))
				}
				conn := testkit.Must(grpc.NewClient(row.scheme+":///orders", opts...))(t)
				defer conn.Close()
				for _, desc := range []*grpc.StreamDesc{nil, serverStream, nil, serverStream} {
					j.attempts = nil
					err := exchange(t.Context(), conn, desc, create)
					synctest.Wait() // NewStream does not wait for observers
					if status.Code(err) != codes.Unavailable || len(j.attempts) != row.want {
						t.Errorf("%v after %d attempts; want %d", err, len(j.attempts), row.want)
					}
				}
				if got := strings.Join(j.warnings, "; "); !strings.Contains(got, row.warn) || (got == "") != (row.warn == "") || len(j.warnings) > 1 {
					t.Errorf("warnings %q; want one with %q", got, row.warn)
				}
			})
		})
	}
}

// gRPC itself retries a stream that the server refused unseen, once for each attempt, even with its retries off. That is not an attempt of
// ours: it costs no budget, doesn't count for maxAttempts, and doesn't need an idempotent method. gRPC's own retries do so for the first
// attempt only.
func TestOutcome_RefusedStream(t *testing.T) {
	most := plain().MaxAttempts
	for name, row := range map[string]struct {
		method            string
		refused           int // streams
		reason            policy.Reason
		streams, attempts int
	}{
		"the first":    {create, 1, "", 2, 1},
		"each of them": {get, math.MaxInt, policy.ReasonAttemptsExhausted, 2 * most, most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				streams := 0
				j := new(journal)
				conn := speaking(t, mustNew(t, mustSet(t, config(plain())), withJournal(j)), func(f *http2.Framer, frame http2.Frame) {
					headers, ok := frame.(*http2.HeadersFrame)
					if !ok {
						return
					}
					streams++
					if streams <= row.refused {
						_ = f.WriteRSTStream(headers.StreamID, http2.ErrCodeRefusedStream)
					} else {
						complete(f, headers.StreamID)
					}
				})
				_, err := (scene{conn: conn}).call(t.Context(), row.method)
				if (err == nil) != (row.reason == "") || reasonOf(err) != row.reason {
					t.Errorf("%v (%s); want %q", err, reasonOf(err), row.reason)
				}
				if streams != row.streams || len(j.attempts) != row.attempts {
					t.Errorf("the server saw %d streams, the observer %d attempts; want %d and %d", streams, len(j.attempts), row.streams, row.attempts)
				}
			})
		})
	}
}

// What fails on this side fails again.
func TestOutcome_OnThisSide(t *testing.T) {
	t.Parallel()
	all := plain()
	all.RetryableStatusCodes = []codes.Code{codes.Internal, codes.ResourceExhausted, codes.Unknown}
	for name, row := range map[string]struct {
		md    metadata.MD
		opts  []grpc.CallOption
		raw   []byte
		inner error // of an inner interceptor
		want  codes.Code
	}{
		"a message that cannot be encoded": {opts: []grpc.CallOption{grpc.ForceCodec(broken{})}, want: codes.Internal},
		"a reply that cannot be decoded":   {raw: []byte{0xff}, want: codes.Internal},
		"a compressor that is not there":   {opts: []grpc.CallOption{grpc.UseCompressor("none-such")}, want: codes.Internal},
		"a codec that is not there":        {opts: []grpc.CallOption{grpc.CallContentSubtype("none-such")}, want: codes.Internal},
		"a header that is not allowed":     {md: metadata.MD{"Not Allowed": {"x"}}, want: codes.Internal},
		"a request that is too large":      {opts: []grpc.CallOption{grpc.MaxCallSendMsgSize(3)}, want: codes.ResourceExhausted},
		"a reply that is too large":        {raw: []byte("\x0a\x04pong"), opts: []grpc.CallOption{grpc.MaxCallRecvMsgSize(3)}, want: codes.ResourceExhausted},
		"wrapped": {
			inner: fmt.Errorf("orders client: %w", status.Error(codes.ResourceExhausted, "trying to send message larger than max (9 vs. 3)")),
			want:  codes.ResourceExhausted,
		},
		"an error without a status": {inner: errors.New("signing key not found"), want: codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(all), func(t *testing.T, s scene) {
				s.On(get, testserver.Stream(func(stream grpc.ServerStream) error { return stream.SendMsg(row.raw) }))
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
					func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						if row.inner != nil {
							return row.inner
						}
						return invoke(ctx, method, req, reply, cc, opts...)
					}))...)
				_, err := s.call(metadata.NewOutgoingContext(t.Context(), row.md), get, row.opts...)
				if status.Code(err) != row.want || reasonOf(err) != policy.ReasonNonRetryable || len(s.attempts) != 1 {
					t.Errorf("%v, %s after %d attempts; want %v, non_retryable after 1", err, reasonOf(err), len(s.attempts), row.want)
				}
				_, was := status.FromError(row.inner)
				if _, is := status.FromError(err); row.inner != nil && (is != was || err.Error() != row.inner.Error()) {
					t.Errorf("%v; want the error as it was, with a status only if it had one", err)
				}
			})
		})
	}
}

func (broken) Name() string                { return "broken" }
func (broken) Marshal(any) ([]byte, error) { return nil, fmt.Errorf("no") }
func (broken) Unmarshal([]byte, any) error { return fmt.Errorf("no") }

func TestUnsent_ConnectionWithoutAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		srv := testserver.Start(t, testserver.Listener(lis))
		srv.On(create, down())
		retrier := mustNew(t, mustSet(t, config(plain())), quiet)
		conn := over(t, retrier, lis, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := lis.DialContext(ctx)
			return tunnel{c}, err
		}))
		_, err := (scene{conn: conn}).call(t.Context(), create)
		if reasonOf(err) != policy.ReasonNotIdempotent || srv.Count(create) != 1 {
			t.Errorf("%s, the server saw it %d times; want not_idempotent, once", reasonOf(err), srv.Count(create))
		}
	})
}

// tunnel is a connection without a remote address.
type tunnel struct{ net.Conn }

func (tunnel) RemoteAddr() net.Addr { return nil }

// An inner interceptor that keeps the options of an attempt to itself leaves no peer behind.
// That proves nothing: the attempt may have reached the server.
func TestUnsent_SwallowedOptions(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", down())
		swallow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return invoke(ctx, method, req, reply, cc)
		}
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(swallow))...)
		for _, row := range []struct {
			method   string
			reason   policy.Reason
			attempts int
		}{
			{get, policy.ReasonAttemptsExhausted, 4},
			{create, policy.ReasonNotIdempotent, 1},
		} {
			s.Reset()
			if _, err := s.call(t.Context(), row.method); reasonOf(err) != row.reason || s.Count(row.method) != row.attempts {
				t.Errorf("%s after %d attempts; want %s after %d", reasonOf(err), s.Count(row.method), row.reason, row.attempts)
			}
		}
	})
}

func TestOutcome_GRPCRetriesReported(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, grpc.WithUnaryInterceptor(s.retrier.Unary()), grpc.WithDefaultServiceConfig(serviceConfig))
		s.On(get, down())
		for range 3 {
			_, _ = s.call(t.Context(), get)
		}
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], get) {
			t.Errorf("warnings %q; want one that names %s", s.warnings, get)
		}
	})
}

// A service config's retries that DialOptions switches off, and the policy file doesn't replace, are reported once for each target.
func TestOutcome_GRPCRetriesSwitchedOff(t *testing.T) {
	own := interceptor.Policy(mustPolicy(t, spec.Policy{Retry: new(plain())}))
	const timed = `{"methodConfig": [{"name": [{}], "timeout": "1s"}]}`
	for name, row := range map[string]struct {
		config   string
		mode     policy.Mode
		method   string
		option   grpc.CallOption
		warnings int
	}{
		"no entry":                       {serviceConfig, policy.ModeEnforce, create, grpc.EmptyCallOption{}, 1},
		"no entry, on trial":             {serviceConfig, policy.ModeObserve, create, grpc.EmptyCallOption{}, 1},
		"no entry, off":                  {serviceConfig, policy.ModeOff, create, grpc.EmptyCallOption{}, 0},
		"no entry, a policy of the call": {serviceConfig, policy.ModeEnforce, create, own, 0},
		"an entry, on trial":             {serviceConfig, policy.ModeObserve, get, grpc.EmptyCallOption{}, 1},
		"an entry":                       {serviceConfig, policy.ModeEnforce, get, grpc.EmptyCallOption{}, 0},
		"an entry without retries":       {serviceConfig, policy.ModeEnforce, "/acme.orders.v1.OrderService/Ship", grpc.EmptyCallOption{}, 0},
		"no retryPolicy":                 {timed, policy.ModeEnforce, create, grpc.EmptyCallOption{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := spec.Config{Mode: string(row.mode), Methods: []spec.MethodConfig{
				{Names: []string{get}, Policy: spec.Policy{Retry: new(plain())}},
				{Names: []string{"/acme.orders.v1.OrderService/Ship"}},
			}}
			play(t, c, func(t *testing.T, s scene) {
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultServiceConfig(row.config))...)
				s.On("*", down())
				for _, kind := range []string{"unary", "stream", "unary", "stream"} {
					_ = s.once(t.Context(), kind, row.method, row.option)
				}
				if len(s.warnings) != row.warnings || row.warnings > 0 && !strings.Contains(s.warnings[0], row.method) {
					t.Errorf("warnings %q; want %d", s.warnings, row.warnings)
				}
			})
		})
	}
}

// gRPC's own retries of a method that stagger doesn't retry multiply with nothing.
func TestOutcome_GRPCRetriesAlone(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, grpc.WithUnaryInterceptor(s.retrier.Unary()), grpc.WithDefaultServiceConfig(serviceConfig))
		const other = "/acme.Other/Get"
		s.On(other, down())
		_, _ = s.call(t.Context(), other)
		if s.Count(other) != 4 || len(s.warnings) > 0 {
			t.Errorf("%d attempts, and warnings %q; want gRPC's 4, and none", s.Count(other), s.warnings)
		}
	})
}

// gRPC's errors for streams that break without a status. The texts are gRPC's: if a version has others, these calls are
// not retried.
func TestOutcome_Cuts(t *testing.T) {
	rows := map[string]struct {
		cut  func(f *http2.Framer, id uint32)
		text string
	}{
		"headers, then the end": {func(f *http2.Framer, id uint32) {
			respond(f, id)
			_ = f.WriteData(id, true, nil)
		}, "server closed the stream without sending trailers"},
		"a message, then the end": {func(f *http2.Framer, id uint32) {
			respond(f, id)
			_ = f.WriteData(id, true, make([]byte, 5))
		}, "server closed the stream without sending trailers"},
		"headers, then reset": {func(f *http2.Framer, id uint32) {
			respond(f, id)
			_ = f.WriteRSTStream(id, http2.ErrCodeInternal)
		}, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"},
	}
	for _, code := range []http2.ErrCode{
		http2.ErrCodeNo, http2.ErrCodeProtocol, http2.ErrCodeSettingsTimeout, http2.ErrCodeStreamClosed, http2.ErrCodeFrameSize,
		http2.ErrCodeCompression, http2.ErrCodeConnect, http2.ErrCodeHTTP11Required,
	} {
		row := rows["headers, then reset"]
		row.cut = func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, code) }
		row.text = "stream terminated by RST_STREAM with error code: " + code.String()
		rows["reset, "+code.String()] = row
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, n := new(journal), 0
				conn := speaking(t, mustNew(t, mustSet(t, config(plain())), withJournal(j)), func(f *http2.Framer, frame http2.Frame) {
					if frame, ok := frame.(*http2.HeadersFrame); ok {
						n++
						if n != 2 && n != 4 {
							row.cut(f, frame.StreamID)
						} else {
							complete(f, frame.StreamID)
						}
					}
				})
				call := func(method string) error {
					j.attempts = nil
					_, err := scene{conn: conn}.call(t.Context(), method)
					return err
				}
				if err := call(get); err != nil || len(j.attempts) != 2 {
					t.Errorf("%v after %d attempts; want OK after 2", err, len(j.attempts))
				}
				stream := testkit.Must(conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, get))(t)
				_ = stream.CloseSend()
				if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
					t.Errorf("stream: %v; want OK", err)
				}
				if err := call(get); !isInternal(err, row.text) || reasonOf(err) != policy.ReasonAttemptsExhausted || len(j.attempts) != 4 {
					t.Errorf("%v, %s after %d attempts; want INTERNAL after 4", err, reasonOf(err), len(j.attempts))
				}
				if err := call(create); !isInternal(err, row.text) || reasonOf(err) != policy.ReasonNotIdempotent || len(j.attempts) != 1 {
					t.Errorf("not safe to repeat: %v, %s after %d attempts; want INTERNAL after 1", err, reasonOf(err), len(j.attempts))
				}
			})
		})
	}
}

func isInternal(err error, text string) bool {
	return status.Code(err) == codes.Internal && strings.HasSuffix(err.Error(), text)
}

// TestOutcome_ProxyAnswers has answers of proxies instead of backends; docs/works-with.md has the same table. gRPC drops
// all headers of a non-gRPC answer, including retry-after.
func TestOutcome_ProxyAnswers(t *testing.T) {
	html := func(code string) func(f *http2.Framer, id uint32) {
		return func(f *http2.Framer, id uint32) {
			writeHeaders(f, id, true, ":status", code, "content-type", "text/html", "retry-after", "7")
		}
	}
	reset := func(code http2.ErrCode) func(f *http2.Framer, id uint32) {
		return func(f *http2.Framer, id uint32) { _ = f.WriteRSTStream(id, code) }
	}
	page := testkit.Must(os.ReadFile("../docs/works-with.md"))(t)
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
			if _, numbered := strconv.Atoi(name); numbered == nil && !tableSays(string(page), name, codename.Of(row.code)) {
				t.Errorf("docs/works-with.md does not say that %s becomes %s", name, codename.Of(row.code))
			}
			synctest.Test(t, func(t *testing.T) {
				conn := speaking(t, mustNew(t, mustSet(t, config(plain()))), func(f *http2.Framer, frame http2.Frame) {
					if frame, ok := frame.(*http2.HeadersFrame); ok {
						row.answer(f, frame.StreamID)
					}
				})
				var header, trailer metadata.MD
				began := time.Now()
				err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
				if status.Code(err) != row.code {
					t.Errorf("%v; want %v", err, row.code)
				}
				if told := strings.Join(append(header.Get("retry-after"), trailer.Get("retry-after")...), ""); told != row.told {
					t.Errorf("retry-after %q; want %q", told, row.told)
				}
				if waited := time.Since(began) >= 7*time.Second; waited != (row.told != "") {
					t.Errorf("the call took %v", time.Since(began))
				}
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
