// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	_ "github.com/stagger-go/stagger/admission"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	get = "/acme.orders.v1.OrderService/GetOrder" // its entry names it: idempotent
	ms  = time.Millisecond
)

// The settings of a policy, with admission.
const (
	once     = "timeout: 3600s" // longer than any call of a test
	retries  = "retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 60s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: NONE}"
	timeouts = "retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 60s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: NONE, " +
		"perAttemptTimeout: 5s}"
	hedges = "hedgingPolicy: {maxAttempts: 2, hedgingDelay: 5s, nonFatalStatusCodes: []}"
)

// admitting returns settings with admission.
func admitting(settings string) string { return "admission: REFUSE, " + settings }

// parse returns the policies of a file that has these settings for GetOrder.
func parse(tb testing.TB, settings string) *policy.Set {
	tb.Helper()
	text := "methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}], " + settings + "}]"
	return testkit.Must(policy.Parse("retry.yaml", []byte(text)))(tb)
}

// journal is an observer that keeps events.
type journal struct {
	mu        sync.Mutex // guards all
	decisions []interceptor.Event
	calls     []interceptor.CallEnd
}

func (j *journal) observer() interceptor.Observer {
	return interceptor.Observer{
		Decision:   func(_ context.Context, e interceptor.Event) { add(j, &j.decisions, e) },
		CallEnd:    func(_ context.Context, e interceptor.CallEnd) { add(j, &j.calls, e) },
		Diagnostic: func(policy.Diagnostic) {},
	}
}

func add[E any](j *journal, list *[]E, e E) {
	j.mu.Lock()
	defer j.mu.Unlock()
	*list = append(*list, e)
}

// scene is a client of one Retrier and its server.
type scene struct {
	*testserver.Server
	*journal

	retrier *interceptor.Retrier
	conn    *grpc.ClientConn
}

// play runs a test in virtual time, with a client that follows a policy with these settings.
func play(t *testing.T, settings string, test func(t *testing.T, s scene), options ...interceptor.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		options := append([]interceptor.Option{interceptor.WithObserver(j.observer()), interceptor.WithRandom(func() float64 { return 0 })}, options...)
		s := scene{Server: testserver.Start(t), journal: j, retrier: testkit.Must(interceptor.New(parse(t, settings), options...))(t)}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s)
	})
}

// call makes a unary call and returns the text that came back.
func (s scene) call(ctx context.Context, opts ...grpc.CallOption) (string, error) {
	reply := new(wrapperspb.StringValue)
	err := s.conn.Invoke(ctx, get, wrapperspb.String("order 7"), reply, opts...)
	return reply.GetValue(), err
}

// running returns how many attempts of GetOrder run.
func (s scene) running(t *testing.T) int {
	t.Helper()
	list := s.retrier.State().Admission
	if len(list) != 1 || list[0].Method != get || list[0].Target == "" {
		t.Fatalf("%+v; want one reading, of %s", list, get)
	}
	return list[0].Running
}

// quiet receives the warnings of a policy, so that they don't go to the default logger.
var quiet = interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})

func text(s string) testserver.Step { return testserver.OK(wrapperspb.String(s)) }

func down() testserver.Step { return testserver.Fail(codes.Unavailable) }

func say(text string) faults.Move { return faults.Send([]proto.Message{wrapperspb.String(text)}...) }

// receive receives one message.
func receive(stream grpc.ClientStream) error { return stream.RecvMsg(new(wrapperspb.StringValue)) }

// reasonOf returns why a call ended.
func reasonOf(err error) policy.Reason {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		return e.Reason
	}
	return ""
}
