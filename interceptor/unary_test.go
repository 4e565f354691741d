// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func down() testserver.Step { return testserver.Fail(codes.Unavailable) }

func TestHeaderTrailerAndPeerComeFromTheLastAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get,
			down().Header(metadata.Pairs("from", "1")).Trailer(metadata.Pairs("end", "1", "only-first", "x")),
			text("hello").Header(metadata.Pairs("from", "2")).Trailer(metadata.Pairs("end", "2")))
		var header, again, trailer metadata.MD
		var p peer.Peer
		got, err := s.call(t.Context(), get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p), grpc.Header(&again))
		if err != nil || got != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
		if fmt.Sprint(header["from"], again["from"], trailer["end"], trailer["only-first"]) != "[2] [2] [2] []" {
			t.Errorf("header %v and %v, trailer %v; want those of the second attempt alone", header["from"], again["from"], trailer)
		}
		if p.Addr == nil {
			t.Error("no peer")
		}
	})
}

func TestATargetIsClearedWhenTheLastAttemptHadNothingForIt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			go s.Down() // from now on attempts have no stream
			return down().Header(metadata.Pairs("from", "1"))
		}))
		header, trailer := metadata.Pairs("stale", "x"), metadata.Pairs("stale", "x")
		p := peer.Peer{Addr: &net.IPAddr{}}
		if _, err := s.call(t.Context(), get, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&p)); err == nil {
			t.Fatal("no error")
		}
		if header != nil || trailer != nil || p != (peer.Peer{}) {
			t.Errorf("header %v, trailer %v, peer %v; want nothing of an attempt without a stream", header["from"], trailer, p)
		}
	})
}

func TestOnFinishRunsOnceForEachOptionWithTheFinalError(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		script []testserver.Step
		want   codes.Code
	}{
		"success after retries": {[]testserver.Step{down().Times(2), text("")}, codes.OK},
		"failure after retries": {[]testserver.Step{down()}, codes.Unavailable},
		"success at once":       {[]testserver.Step{text("")}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.script...)
				var first, second []error
				_, err := s.call(t.Context(), get,
					grpc.OnFinish(func(err error) { first = append(first, err) }),
					grpc.OnFinish(func(err error) { second = append(second, err) }))
				if len(first) != 1 || len(second) != 1 || first[0] != err || status.Code(err) != row.want { //nolint:errorlint // the same one
					t.Errorf("OnFinish was told %v and %v; want %v once each", first, second, err)
				}
			})
		})
	}
}

func TestTheServerIsToldHowManyAttemptsWentBefore(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(2), text(""))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme")
		if _, err := s.call(ctx, get); err != nil {
			t.Fatal(err)
		}
		var counts []string
		for _, a := range s.Attempts() {
			counts = append(counts, fmt.Sprint(a.Metadata["grpc-previous-rpc-attempts"], a.Metadata["tenant"]))
		}
		if got := strings.Join(counts, " "); got != "[] [acme] [1] [acme] [2] [acme]" {
			t.Errorf("the server saw %s", got)
		}
	})
}

func TestAProxyDoesNotPassOnTheCountOfItsCaller(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(1), text(""))
		incoming := metadata.Pairs("grpc-previous-rpc-attempts", "3", "tenant", "acme")
		ctx := metadata.NewOutgoingContext(metadata.NewIncomingContext(t.Context(), incoming), incoming.Copy())
		if _, err := s.call(ctx, get); err != nil {
			t.Fatal(err)
		}
		first, second := s.Attempts()[0].Metadata, s.Attempts()[1].Metadata
		if got := fmt.Sprint(first["grpc-previous-rpc-attempts"], second["grpc-previous-rpc-attempts"], first["tenant"]); got != "[] [1] [acme]" {
			t.Errorf("the server saw %s", got)
		}
	})
}

// A unary call can bring a message and then fail. With protobuf the next decoding starts from
// nothing; with other codecs it may add to what is there.
func TestAReplyThatAFailedAttemptFilledIsEmptied(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	synctest.Test(t, func(t *testing.T) {
		type order struct{ Items []string }
		var reply order
		attempts := 0
		err := unary(t.Context(), get, nil, &reply, nil,
			func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				attempts++
				o := reply.(*order)
				o.Items = append(o.Items, fmt.Sprint("item of attempt ", attempts))
				if attempts < 3 {
					return status.Error(codes.Unavailable, "")
				}
				return nil
			})
		if err != nil || fmt.Sprint(reply.Items) != "[item of attempt 3]" {
			t.Errorf("%v, %v; want the items of the last attempt", reply.Items, err)
		}
	})
}

func TestAPartialReplyIsReplacedByTheNextAttempts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Reply(wrapperspb.String("half")), text(""))
		if got, err := s.call(t.Context(), get); err != nil || got != "" {
			t.Errorf("%q, %v; want the empty reply of the second attempt", got, err)
		}
	})
}

func TestHeadersBeforeAFailureDoNotCommitAUnaryCall(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Header(metadata.Pairs("a", "b")), text("hello"))
		if got, err := s.call(t.Context(), get); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestHeadersCommitWithCommitOnHeaders(t *testing.T) {
	strict := plain()
	strict.CommitOn = policy.CommitOnHeaders
	play(t, config(strict), func(t *testing.T, s scene) {
		s.On(get, down().Times(1), down().Header(metadata.Pairs("a", "b")), text("never sent"))
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonCommitted || s.Count(get) != 2 {
			t.Errorf("%v after %d attempts; want committed after 2", reasonOf(err), s.Count(get))
		}
	})
}

func TestAClosedConnectionEndsAWaitingCallWithoutAnotherAttempt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "the disk is full").Pushback("60000"))
		time.AfterFunc(7*time.Second, func() { _ = s.conn.Close() })
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonClosed || status.Convert(err).Message() != "the disk is full" {
			t.Errorf("%v, %s; want the server's error, closed", err, reasonOf(err))
		}
		if waited := time.Since(began); waited != 7*time.Second || s.Count(get) != 1 {
			t.Errorf("returned after %v and %d attempts; want 7s and 1", waited, s.Count(get))
		}
	})
}

func TestACallOnAClosedConnectionIsNotRetried(t *testing.T) {
	all := plain()
	all.Codes = policy.Codes(codes.Unavailable, codes.Canceled)
	play(t, config(all), func(t *testing.T, s scene) {
		_ = s.conn.Close()
		if _, err := s.call(t.Context(), get); status.Code(err) != codes.Canceled || len(s.attempts) != 1 {
			t.Errorf("%v after %d attempts; want CANCELED after 1", err, len(s.attempts))
		}
	})
}

func TestACallThatItsCallerCancelledIsNotRetried(t *testing.T) {
	all := plain()
	all.Codes = policy.Codes(codes.Unavailable, codes.Canceled)
	play(t, config(all), func(t *testing.T, s scene) {
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.call(ctx, get); status.Code(err) != codes.Canceled || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%v, %s", err, reasonOf(err))
		}
	})
}

func TestCancelledFromTheServerIsRetriedWhenListed(t *testing.T) {
	all := plain()
	all.Codes = policy.Codes(codes.Canceled)
	play(t, config(all), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Canceled).Times(1), text("hello"))
		if got, err := s.call(t.Context(), get); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestAMessageThatIsTooLargeIsNotRetried(t *testing.T) {
	t.Parallel()
	all := plain()
	all.Codes = policy.Codes(codes.ResourceExhausted)
	for name, opt := range map[string]grpc.CallOption{
		"request": grpc.MaxCallSendMsgSize(3),
		"reply":   grpc.MaxCallRecvMsgSize(3),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(all), func(t *testing.T, s scene) {
				s.On(get, text("a long reply"))
				_, err := s.call(t.Context(), get, opt)
				if status.Code(err) != codes.ResourceExhausted || reasonOf(err) != policy.ReasonNonRetryable || len(s.attempts) != 1 {
					t.Errorf("%v, %s after %d attempts; want non_retryable after 1", err, reasonOf(err), len(s.attempts))
				}
			})
		})
	}
}

func TestAnErrorWithoutStatusIsNotRetried(t *testing.T) {
	t.Parallel()
	unknown := plain()
	unknown.Codes = policy.Codes(codes.Unknown)
	unary := mustNew(t, mustSet(t, config(unknown)), quiet).Unary()
	failure := fmt.Errorf("signing key not found")
	attempts := 0
	err := unary(t.Context(), get, nil, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			attempts++
			return failure
		})
	if attempts != 1 || reasonOf(err) != policy.ReasonNonRetryable || err.Error() != failure.Error() {
		t.Errorf("%v after %d attempts; want %v after 1", err, attempts, failure)
	}
	if _, ok := status.FromError(err); ok {
		t.Error("the error has a status that its cause has not")
	}
}

// An interceptor further in that keeps the options of an attempt to itself leaves no peer behind.
// That proves nothing: the attempt may have reached the server.
func TestAnUnsafeCallIsNotRepeatedOnTheWordOfAnInterceptorThatSwallowsOptions(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(create, down())
		swallow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return invoke(ctx, method, req, reply, cc)
		}
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(swallow))...)
		if _, err := s.call(t.Context(), create); reasonOf(err) != policy.ReasonNotIdempotent || s.Count(create) != 1 {
			t.Errorf("%s after %d attempts; want not_idempotent after 1", reasonOf(err), s.Count(create))
		}
	})
}

const serviceConfig = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s",
	"maxBackoff": "1s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

func TestDialOptionsSwitchGRPCsOwnRetriesOff(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithDefaultServiceConfig(serviceConfig))...)
		s.On(get, down())
		_, _ = s.call(t.Context(), get)
		if got := s.Count(get); got != 4 || len(s.warnings) > 0 {
			t.Errorf("the server saw %d attempts; want 4. Warnings: %v", got, s.warnings)
		}
	})
}

func TestGRPCsOwnRetriesBesideOursAreReportedOnceAMethod(t *testing.T) {
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

// When gRPC retries too, an attempt of ours without a stream may have had one before.
func TestAnUnsafeCallIsNotRepeatedWhereGRPCMayHaveSentIt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, grpc.WithUnaryInterceptor(s.retrier.Unary()), grpc.WithDefaultServiceConfig(serviceConfig))
		s.On(create, testserver.Func(func(context.Context, testserver.Attempt) testserver.Step {
			go s.Down()
			return down()
		}))
		if _, err := s.call(t.Context(), create); reasonOf(err) != policy.ReasonNotIdempotent || s.Count(create) != 1 {
			t.Errorf("%s after %d attempts; want not_idempotent after 1", reasonOf(err), s.Count(create))
		}
	})
}

func TestTwoRetriersOnOneConnectionDoNotMultiply(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		inner := s.retrier.DialOptions()
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), inner...)...)
		s.On(get, down())
		for range 2 {
			_, _ = s.call(t.Context(), get)
		}
		if got := s.Count(get); got != 8 || len(s.warnings) != 1 {
			t.Errorf("the server saw %d attempts of two calls, and %d warnings; want 8 and 1", got, len(s.warnings))
		}
	})
}

func TestAPoliciesTimeoutBoundsTheWholeCall(t *testing.T) {
	c := config(plain())
	c.Methods[0].Timeout = 350 * ms
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, down())
		began := time.Now()
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonDeadlineTooClose || time.Since(began) != 300*ms {
			t.Errorf("%s after %v; want deadline_too_close after 300ms", reasonOf(err), time.Since(began))
		}
		if got := s.Attempts()[0].Timeout; got != 350*ms {
			t.Errorf("the server was told of %v; want the policy's 350ms", got)
		}
		s.On(get, testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		began = time.Now()
		if _, err := s.call(ctx, get); status.Code(err) != codes.DeadlineExceeded || time.Since(began) != 50*ms {
			t.Errorf("%v after %v; want the caller's earlier deadline", err, time.Since(began))
		}
	})
}

func TestAPoliciesWaitForReadyIsTheDefaultOfItsCalls(t *testing.T) {
	c := config(plain())
	c.Methods[0].WaitForReady = new(true)
	play(t, c, func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(3*time.Second, s.Up)
		if _, err := s.call(t.Context(), get); err != nil || len(s.attempts) != 1 {
			t.Errorf("%v after %d attempts; want one that waited", err, len(s.attempts))
		}
		s.Down()
		if _, err := s.call(t.Context(), get, grpc.WaitForReady(false)); status.Code(err) != codes.Unavailable {
			t.Errorf("%v; want the call's own option to win", err)
		}
	})
}

func TestAPoliciesMessageLimitsHoldUnlessTheCallsAreSmaller(t *testing.T) {
	t.Parallel()
	c := config(plain())
	c.Methods[0].MaxRequestBytes, c.Methods[0].MaxResponseBytes = new(9), new(9)
	for _, row := range []struct {
		reply string
		opts  []grpc.CallOption
		want  codes.Code
	}{
		{"short", nil, codes.OK}, // "order 7" and "short" are 9 and 7 bytes
		{"too long", nil, codes.ResourceExhausted},
		{"too long", []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, codes.ResourceExhausted},
		{"short", []grpc.CallOption{grpc.MaxCallSendMsgSize(8)}, codes.ResourceExhausted},
		{"short", []grpc.CallOption{grpc.MaxCallRecvMsgSize(6)}, codes.ResourceExhausted},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, text(row.reply))
				if _, err := s.call(t.Context(), get, row.opts...); status.Code(err) != row.want {
					t.Errorf("%v; want %v", err, row.want)
				}
			})
		})
	}
}

func TestACallWithoutAPolicyHasOneAttempt(t *testing.T) {
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.On(get, down())
		_, err := s.call(t.Context(), get)
		if reasonOf(err) != policy.ReasonNonRetryable || s.Count(get) != 1 {
			t.Errorf("%s after %d attempts", reasonOf(err), s.Count(get))
		}
	})
}

// previousAttempts is what the client says of the attempts before.
func previousAttempts(a testserver.Attempt) int {
	n, _ := strconv.Atoi(strings.Join(a.Metadata["grpc-previous-rpc-attempts"], ""))
	return n
}

func TestManyCallsAtOnceKeepToThemselves(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("/acme.orders.v1.OrderService/*", testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			name := a.Metadata["caller"][0]
			if previousAttempts(a) < len(name)%3 {
				return down().Trailer(metadata.Pairs("end", "wrong"))
			}
			return text(name).Trailer(metadata.Pairs("end", name))
		}))
		done := make(chan string)
		for i := range 200 {
			name := fmt.Sprint("caller-", i)
			go func() {
				var trailer metadata.MD
				ctx := metadata.AppendToOutgoingContext(t.Context(), "caller", name)
				got, err := s.call(ctx, get, grpc.Trailer(&trailer))
				if err != nil || got != name || fmt.Sprint(trailer["end"]) != "["+name+"]" {
					done <- fmt.Sprintf("%s got %q, %v, %v", name, got, trailer["end"], err)
					return
				}
				done <- ""
			}()
		}
		for range 200 {
			if wrong := <-done; wrong != "" {
				t.Error(wrong)
			}
		}
	})
}

func TestTheInterceptorWorksOnLoopbackTCP(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, testserver.TCP())
	srv.On(get, down().Pushback("0").Times(1), text("hello"))
	retrier := mustNew(t, mustSet(t, config(plain())), quiet)
	conn, err := grpc.NewClient(srv.Addr(), append(retrier.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := (scene{conn: conn}).call(t.Context(), get); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// Headers cost a copy in every call, so a first attempt does not bring them unless somebody asks.
func TestARetryAfterIsObeyedInTrailersAndFromTheSecondAttemptOnInHeaders(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		inHeader := down().Header(metadata.Pairs("retry-after", "5"))
		s.On(get, down().RetryAfter("3"), inHeader, inHeader.RetryAfter("7"), text(""))
		if _, err := s.call(t.Context(), get); err != nil || s.waits() != "[3s 5s 7s]" {
			t.Errorf("%v, waits %s; want [3s 5s 7s]", err, s.waits())
		}
		s.Reset()
		s.On(get, inHeader, text(""))
		var header metadata.MD
		if _, err := s.call(t.Context(), get, grpc.Header(&header)); err != nil || s.waits() != "[5s]" {
			t.Errorf("%v, waits %s; want [5s], since the caller asks for headers", err, s.waits())
		}
	})
}
