// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const file = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy:
      maxAttempts: 3
      initialBackoff: 0.1s
      maxBackoff: 1s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE]
      jitter: NONE
      perAttemptTimeout: 1s
      budget: NONE
`

// logged runs one call against a script, after twenty that succeed at once, and returns what it logs, without time and target.
func logged(t *testing.T, script ...testserver.Step) string {
	t.Helper()
	return loggedInMode(t, policy.ModeEnforce, script...)
}

func loggedInMode(t *testing.T, mode policy.Mode, script ...testserver.Step) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
		handler := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "target" {
				return slog.Attr{}
			}
			return a
		}})
		retrier := testkit.Must(interceptor.New(set, interceptor.WithObserver(observe.Slog(slog.New(handler)))))(t)
		srv := testserver.Start(t)
		srv.On("*", testserver.OK())
		conn := srv.Dial(t, retrier.DialOptions()...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 20 { // so that a hedge is known to be worth while
			testkit.NoError(t, conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{}))
		}
		testkit.NoError(t, retrier.SetMode(interceptor.ModeSwitch{Mode: mode}))
		srv.On("*", script...)
		_ = conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
	})
	return out.String()
}

// A server may send megabytes; a line of a log has a part, and says so.
func TestSlog_LongError(t *testing.T) {
	t.Parallel()
	got := logged(t, testserver.Fail(codes.Unavailable, strings.Repeat("disk full ", 20_000)))
	if len(got) > 3000 || !strings.Contains(got, "disk full disk full") || !strings.Contains(got, "bytes)") {
		t.Errorf("%d bytes: %.2000s", len(got), got)
	}
}

// A logger that is nil is refused when the Retrier is made, and not at the first retry.
func TestSlog_Nil(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]interceptor.Observer{
		"Slog": observe.Slog(nil), "Log": observe.Log(nil), "Log of a typed nil": observe.Log((*ofNothing)(nil)), "nothing": {},
	} {
		empty := testkit.Must(compiled.NewSet(spec.Config{}))(t)
		_, err := interceptor.New(empty, interceptor.WithObserver(o))
		if err == nil || !strings.Contains(err.Error(), "interceptor: WithObserver: the observer has no function, as that of observe.Slog(nil)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type ofNothing struct{}

func (*ofNothing) Log(context.Context, logging.Level, string, ...any) {}

func TestSlog(t *testing.T) {
	t.Parallel()
	const method = "method=/acme.orders.v1.OrderService/GetOrder "
	const full = `error="rpc error: code = Unavailable desc = disk full"`
	down := testserver.Fail(codes.Unavailable, "disk full")
	for name, row := range map[string]struct {
		script []testserver.Step
		want   []string
	}{
		"success at once logs nothing":          {[]testserver.Step{testserver.OK()}, nil},
		"failure for good at once logs nothing": {[]testserver.Step{testserver.Fail(codes.NotFound)}, nil},
		"a retry; not the success that it led to": {
			[]testserver.Step{down, testserver.OK()},
			[]string{"level=INFO msg=\"stagger: retry\" " + method + "attempt=1 peer=bufconn code=UNAVAILABLE delay=100ms " + full},
		},
		"pushback that stops the call": {[]testserver.Step{down.Pushback("-1")}, nil}, // its sender logs it

		"an attempt that timed out, and pushback that delays": {
			[]testserver.Step{testserver.Hang().Times(1), down.Pushback("0"), testserver.OK()},
			[]string{
				"level=INFO msg=\"stagger: hedge\" " + method + "attempt=1 code=SLOW delay=100ms",
				"level=INFO msg=\"stagger: retry\" " + method + "attempt=2 peer=bufconn code=UNAVAILABLE delay=0s pushback=grpc-retry-pushback-ms " + full,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.Join(row.want, "\n")
			if got := strings.TrimSpace(logged(t, row.script...)); got != want {
				t.Errorf("logged\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A call that failed is logged with the backend of its last attempt, also if that ended with the call.
func TestSlog_CallFailedPeer(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]testserver.Step{
		"each attempt failed": {testserver.Fail(codes.Unavailable, "disk full")},
		"the service hangs":   {testserver.Hang()},
		"no retry":            {testserver.Fail(codes.Internal, "disk full")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, line, _ := strings.Cut(logged(t, script...), `msg="stagger: call failed"`)
			if !strings.Contains(line, " peer=bufconn ") {
				t.Errorf("call failed: %s; want its peer", line)
			}
			if hangs := name == "the service hangs"; strings.Contains(line, " waitedFor=response ") != hangs {
				t.Errorf("call failed: %s; want waitedFor=response: %v", line, hangs)
			}
		})
	}
}

// By default, the first retry of ten seconds has a line of its own, and with EveryRetry each.
func TestSlog_EveryRetry(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		options []observe.LogOption
		want    int
	}{"default": {nil, 1}, "every retry": {[]observe.LogOption{observe.EveryRetry(), {}}, 7}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out synced
				o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)), row.options...)
				for range 7 {
					o.Sent(t.Context(), interceptor.Event{Method: "/S/Get", WillRetry: true, Reason: policy.ReasonRetry})
				}
				if got := out.take(); strings.Count(got, "stagger: retry") != row.want {
					t.Errorf("logged %s; want %d lines", got, row.want)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// middlewareConn is the connection of docs/go-grpc-middleware.md: go-grpc-middleware's interceptors come first, so that they see calls.
func middlewareConn(target string, retrier *interceptor.Retrier, logger logging.Logger, transport []grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target, slices.Concat(
		[]grpc.DialOption{grpc.WithChainUnaryInterceptor(
			timeout.UnaryClientInterceptor(2*time.Second), // of the call: one deadline for all its attempts
			logging.UnaryClientInterceptor(logger),        // a line for each call
		)},
		retrier.DialOptions(), // with observe.Log(logger): a line for retries, and for calls that fail
		transport,
	)...)
	return conn, err
}

// A query for the lines of go-grpc-middleware's own interceptor finds those of Log, too.
func TestLog_MiddlewareFields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards lines
		lines := map[string]map[string]any{}
		logger := logging.LoggerFunc(func(_ context.Context, level logging.Level, msg string, fields ...any) {
			mu.Lock()
			defer mu.Unlock()
			line := map[string]any{"level": level}
			for i := logging.Fields(fields).Iterator(); i.Next(); {
				key, value := i.At()
				if _, twice := line[key]; twice {
					t.Errorf("%s: %s is there twice", msg, key)
				}
				line[key] = value
			}
			if lines[msg] == nil { // else it counts suppressed ones
				lines[msg] = line
			}
		})
		set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
		retrier := testkit.Must(interceptor.New(set, interceptor.WithObserver(observe.Log(logger))))(t)
		srv := testserver.Start(t)
		srv.On("*", testserver.Fail(codes.Unavailable, "disk full"))
		conn := testkit.Must(middlewareConn(srv.Target(), retrier, logger, srv.DialOptions()))(t)
		defer conn.Close()
		ctx := logging.InjectFields(t.Context(), logging.Fields{"order", 17, "grpc.component", "server"})
		_ = conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		theirs := lines["finished call"]
		ours := lines["stagger: call failed"]
		for _, key := range []string{"protocol", "grpc.component", "grpc.service", "grpc.method", "grpc.code", "grpc.error", "order"} {
			if theirs[key] == nil || theirs[key] != ours[key] {
				t.Errorf("%s: %v; in a line of go-grpc-middleware %v", key, ours[key], theirs[key])
			}
		}
		if theirs["level"] == nil || lines["stagger: policy warning"] != nil {
			t.Errorf("a call has no deadline: %v", lines["stagger: policy warning"])
		}
		code, summary := lines["stagger: retry"]["grpc.code"], lines["stagger: attempts at bufconn failed: 3 of 3 (UNAVAILABLE)"]
		if code != "Unavailable" || summary["grpc.component"] != "client" {
			t.Errorf("a retry has the code %v; lines %v", code, lines)
		}
	})
}

// A call that ended because answers were slow is logged with these.
func TestSlog_Answers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
	o.CallEnd(t.Context(), interceptor.CallEnd{
		Attempts: 1, Code: codes.DeadlineExceeded, Err: context.DeadlineExceeded,
		Reason: policy.ReasonNotProvenFast, Answers: interceptor.Answers{Known: 10, Slow: 3, Over: 400 * time.Millisecond},
	})
	if want := `reason=not_proven_fast elapsed=0s waited=0s answers="3 of the last 10 responses were slow: over 400ms" error=`; !strings.Contains(out.String(), want) {
		t.Errorf("%s; want %s", out.String(), want)
	}
}

// A retry that isn't sent is not logged.
func TestSlogOfARetryThatIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
		retrier := testkit.Must(interceptor.New(set, interceptor.WithObserver(observe.Slog(slog.New(slog.NewTextHandler(&out, nil))))))(t)
		srv := testserver.Start(t)
		srv.On("*", testserver.Fail(codes.Unavailable, "down"))
		conn := srv.Dial(t, retrier.DialOptions()...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(50*time.Millisecond, cancel) // in the backoff of 100 ms
		_ = conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
		got := out.take()
		if strings.Contains(got, `msg="stagger: retry"`) || !strings.Contains(got, `msg="stagger: call failed"`) || !strings.Contains(got, "reason=cancelled") {
			t.Errorf("logged %s; want the failure only, of a call that was cancelled in its backoff", got)
		}
	})
}

func TestSlogModes(t *testing.T) {
	t.Parallel()
	const method = "method=/acme.orders.v1.OrderService/GetOrder "
	down := testserver.Fail(codes.Unavailable, "down")
	for name, row := range map[string]struct {
		mode   policy.Mode
		script testserver.Step
		want   []string
	}{
		"a retry that is observed": {policy.ModeObserve, down, []string{
			`level=WARN msg="stagger: mode set" from=ENFORCE to=OBSERVE`,
			`level=INFO msg="stagger: would retry" ` + method + "attempt=1 peer=bufconn code=UNAVAILABLE delay=100ms mode=OBSERVE error=\"rpc error: code = Unavailable desc = down\"",
		}},
		"a hedge that is observed": {policy.ModeObserve, testserver.OK().Delay(2 * time.Second), []string{
			`level=WARN msg="stagger: mode set" from=ENFORCE to=OBSERVE`,
			`level=INFO msg="stagger: would hedge" ` + method + "attempt=1 code=SLOW delay=100ms mode=OBSERVE",
		}},
		"off": {policy.ModeOff, down, []string{
			`level=WARN msg="stagger: mode set" from=ENFORCE to=OFF`,
			`level=WARN msg="stagger: call failed" ` + method + `attempts=1 peer=bufconn code=UNAVAILABLE reason=mode_off elapsed=0s waited=0s mode=OFF error="rpc error: code = Unavailable desc = down"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.Join(row.want, "\n")
			if got := strings.TrimSpace(loggedInMode(t, row.mode, row.script)); got != want {
				t.Errorf("logged\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Nothing is sent after the first attempt. What a caller did wrong or no longer wants is no trouble of the service.
func TestSlogOfOneAttempt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason policy.Reason
		code   codes.Code
		slow   bool
		want   bool
	}{
		{policy.ReasonCancelled, codes.Canceled, false, false},
		{policy.ReasonCancelled, codes.Canceled, true, true}, // users leave a slow service
		{policy.ReasonClosed, codes.Unavailable, false, false},
		{policy.ReasonPushbackStop, codes.Unavailable, false, false}, // its sender logs it
		{policy.ReasonNotIdempotent, codes.Unavailable, false, true},
		{policy.ReasonBudgetExhausted, codes.Unavailable, false, true},
		{policy.ReasonDeadlineExceeded, codes.DeadlineExceeded, false, true},
		{policy.ReasonNonRetryable, codes.NotFound, false, false},
		{policy.ReasonNonRetryable, codes.InvalidArgument, false, false},
		{policy.ReasonNonRetryable, codes.Canceled, false, false},
		{policy.ReasonNonRetryable, codes.Internal, false, true},
		{policy.ReasonNonRetryable, codes.ResourceExhausted, false, true},
		{policy.ReasonNonRetryable, codes.Code(99), false, true},
	} {
		var out synced
		o := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
		o.CallEnd(t.Context(), interceptor.CallEnd{Attempts: 1, Code: row.code, Reason: row.reason, SlowAttempt: row.slow, Err: context.Canceled})
		if got := out.take(); (got != "") != row.want {
			t.Errorf("%s, %s: logged %q", row.reason, row.code, got)
		}
	}
}

// A service hangs, and then refuses all calls. Nothing is retried, and the log says of both within ten seconds, in a line each.
func TestSlog_WithoutRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out synced
		set := testkit.Must(policy.Parse("retry.yaml", []byte(chainFile)))(t) // lists UNAVAILABLE, and has no perAttemptTimeout
		retrier := testkit.Must(interceptor.New(set, interceptor.WithObserver(observe.Slog(slog.New(slog.NewTextHandler(&out, nil))))))(t)
		srv := testserver.Start(t)
		conn := srv.Dial(t, retrier.DialOptions()...)
		for code, step := range map[codes.Code]testserver.Step{
			codes.DeadlineExceeded: testserver.Hang(), codes.ResourceExhausted: testserver.Fail(codes.ResourceExhausted, "full"),
		} {
			srv.On("*", step)
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				_ = conn.Invoke(ctx, "/acme.orders.v1.OrderService/GetOrder", &emptypb.Empty{}, &emptypb.Empty{})
				<-ctx.Done()
				cancel()
			}
			time.Sleep(15 * time.Second)
			lines := out.take()
			first, summary, _ := strings.Cut(lines, "\n")
			if strings.Count(lines, "\n") != 2 || !strings.Contains(first, `msg="stagger: call failed"`) ||
				!strings.Contains(first, " code="+codename.Of(code)) ||
				!strings.Contains(summary, "more=99") {
				t.Errorf("%s: logged\n%swant the first call, and a line that counts the 99 others", code, lines)
			}
		}
	})
}

// A number without a unit could be anything: slog's JSON has nanoseconds.
func TestSlog_JSONDurations(t *testing.T) {
	t.Parallel()
	var out synced
	o := observe.Slog(slog.New(slog.NewJSONHandler(&out, nil)))
	o.Sent(t.Context(), interceptor.Event{Attempt: 1, Code: codes.Unavailable, Reason: policy.ReasonRetry, Delay: 120 * time.Millisecond})
	o.CallEnd(t.Context(), interceptor.CallEnd{Attempts: 2, Code: codes.Unavailable, Err: context.Canceled, Elapsed: 1500 * time.Millisecond, Waited: 120 * time.Millisecond})
	got := out.take()
	for _, want := range []string{`"delay":"120ms"`, `"elapsed":"1.5s"`, `"waited":"120ms"`} {
		if !strings.Contains(got, want) {
			t.Errorf("logged %s; want %s", got, want)
		}
	}
}

func TestSlogTellsOfWarnings(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	observer := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
	observer.Diagnostic(policy.Diagnostic{Severity: document.SeverityWarning, File: "retry.yaml", Line: 3, Column: 5, Message: "no policy names this budget"})
	if !strings.Contains(out.String(), "retry.yaml:3:5: no policy names this budget") {
		t.Errorf("logged %q", &out)
	}
	out.Reset()
	observer.Diagnostic(policy.Diagnostic{File: "retry.yaml", Severity: document.SeverityNote, Message: "not followed"})
	observer.Diagnostic(policy.Diagnostic{File: "retry.yaml", Severity: document.SeverityError, Message: "is refused"})
	for _, want := range []string{`level=INFO msg="stagger: policy note" note="retry.yaml: not followed"`, `level=ERROR msg="stagger: policy error" error="retry.yaml: is refused"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %q; want %s", &out, want)
		}
	}
}

func TestSlogTellsOfReloads(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	observer := observe.Slog(slog.New(slog.NewTextHandler(&out, nil)))
	observer.Reload(nil, nil, context.Canceled)
	if out.Len() != 0 {
		t.Errorf("a refused one, of which there is a warning: logged %q", &out)
	}
	set := testkit.Must(policy.Parse("retry.yaml", []byte("{}")))(t)
	observer.Reload(set, []string{"maxAttempts of GetOrder 3 → 2", "mode ENFORCE → OFF"}, nil)
	if !strings.Contains(out.String(), `level=INFO msg="stagger: policies reloaded" source=retry.yaml hash=`+set.Hash()+` changes="maxAttempts of GetOrder 3 → 2; mode ENFORCE → OFF"`) {
		t.Errorf("logged %q", &out)
	}
	out.Reset()
	observer.Reload(set, strings.Fields("a b c d e f g h i j k l"), nil)
	if !strings.Contains(out.String(), ` changes="a; b; c; d; e; f; g; h; i; j; 2 more"`) {
		t.Errorf("of twelve changes, logged %q", &out)
	}
}

// synced is a buffer that a timer may write to.
type synced struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (b *synced) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was written since the last time.
func (b *synced) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}
