// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/grpctext"
	"github.com/stagger-go/stagger/policy"
)

// contextEnded reports whether err isn't a response, but the error that gRPC, or an inner interceptor, returns because the context of
// attempt a has ended. If the driver has cancelled a before gRPC opened its stream, and the call goes on, any error is of that kind: the
// credentials choose its code.
func (c *call) contextEnded(a *attempt, err error, now attempts.Now) bool {
	cancelled := a.ctx.Err() != nil
	switch {
	case err == nil:
		return false
	case isResponse(err):
		return cancelled && c.ctx.Err() == nil && a.report.unsent
	default:
		return cancelled || c.reasonGone(now) != ""
	}
}

// resultOf returns the result of attempt a, which has returned err at now. contextEnded is what [call.contextEnded] has found at that time:
// the driver may have cancelled a since.
func (c *call) resultOf(a *attempt, reply any, err error, contextEnded bool, now attempts.Now) (r attempts.Result) {
	r.Err, r.Status, r.ContextEnded = err, ok, contextEnded
	var verdict Verdict
	judged := err != nil || reply != nil // for streams, only failures
	if err != nil && !a.report.ended && c.cc != nil {
		reply = nil // an inner interceptor may have left the attempt running, and it still writes into reply
	}
	if c.retrier.classifier != nil && c.entry.policy.MaxAttempts() > 1 && judged && !r.ContextEnded {
		ctx := context.WithValue(c.ctx, trailerKey{}, a.report.trailer)
		verdict = c.retrier.classifier(ctx, c.method, reply, err)
	}
	r.Trailer = a.report.trailer
	r.Delay = verdict.Delay
	r.Again, r.Final = verdict.means == meansRetry || verdict.means == meansNotYet, verdict.means == meansFinal
	r.Well = verdict.means == meansNotYet
	if err == nil {
		r.Origin = c.originOf(a, codes.OK)
		return r
	}
	st, isStatus := status.FromError(err)
	r.Status = st
	r.Origin = c.originOf(a, st.Code())
	// An error without a status comes from an interceptor, not from a server.
	withoutStatus := !isStatus || st.Code() == codes.OK
	r.LocalError = c.localError(a, st, &now)
	r.Final = r.Final || withoutStatus && verdict.means == meansByCode || grpctext.Deterministic(st.Code(), err) ||
		a.report.unsent && grpctext.Dropped(st.Code(), err)
	return r
}

// warnOfFailure looks for the causes of warnings after an attempt with an error. After a success they don't matter, and to look for them
// takes a lock of gRPC's.
func (c *call) warnOfFailure(a *attempt, err error) {
	if err == nil {
		return
	}
	if a.report.ended && !a.report.unsent {
		c.warnNotBalanced()
	}
	c.warnRetriesOff()
	c.warnCut()
	c.warnMultiplied()
}

// warnCut warns if the caller's own policy has more attempts than the Retrier allows. Loading has warned of the Retrier's policies.
func (c *call) warnCut() {
	set := c.entry.rules.set
	most := set.Compiled().MaxAttemptsLimit
	if c.entry.policy.MaxAttempts() > most && set.Lookup(c.entry.policy.Name()) != c.entry.policy {
		n := strconv.Itoa(c.entry.policy.MaxAttempts())
		c.retrier.warnOnce(&cutAttempts, n, n, most)
	}
}

// originOf returns the origin of the result of attempt a, which has returned with this code. If gRPC has not called OnFinish, an inner
// interceptor has made the result: it has answered, or has waited in vain, as for a token.
func (c *call) originOf(a *attempt, code codes.Code) decision.Origin {
	switch {
	case c.cc == nil:
		return decision.FromServer
	case !a.report.ended && !a.expired:
		return decision.FromInterceptor
	case !a.report.ended:
		return decision.Unseen
	case !a.report.unsent:
		return decision.FromServer
	case code == codes.Unavailable && !c.grpcMayHaveRetried():
		return decision.Unsent
	default:
		return decision.Unseen
	}
}

// localError reports whether the error of attempt a says nothing of the server: an inner interceptor has returned it, or it comes from this
// client's credentials, codecs or size limits. A failure to connect says that no server is there.
func (c *call) localError(a *attempt, st *status.Status, now *attempts.Now) bool {
	switch {
	case c.cc == nil:
		return false
	case !a.report.ended:
		return true
	case !a.report.unsent:
		_, fromServer := a.report.trailer["content-type"] // as in all responses that are errors from the start
		return !fromServer && grpctext.BadMessage(st)
	case now.Down || now.Connecting:
		return st.Code() != codes.Unavailable && st.Code() != codes.DeadlineExceeded
	default:
		return true
	}
}

var ok = status.New(codes.OK, "")

// isResponse reports whether err is a response, and not the result of a cancelled context:
// gRPC converts that error to a status, and an inner interceptor may return it unchanged.
func isResponse(err error) bool {
	st, ok := status.FromError(err)
	return ok && st.Code() != codes.Canceled && st.Code() != codes.DeadlineExceeded
}

// warnRetriesOff warns, once per target, if the connection's service config has a retry policy for a method, but neither gRPC nor the
// Retrier retries it.
func (c *call) warnRetriesOff() {
	if c.cc == nil || c.grpcRetries == grpcMayRetry || c.entry.mode == policy.ModeOff {
		return
	}
	enforced := c.entry.mode == policy.ModeEnforce && (c.entry.policy != c.retrier.single || c.entry.rules.set.Lookup(c.method) != nil)
	if !enforced && retriesItself(c.cc, c.method) {
		c.retrier.warnOnce(&retriesOff, c.target(), c.entry.name)
	}
}

// grpcMayHaveRetried reports whether gRPC may have retried an attempt by itself. Then an attempt without a stream may still have reached a
// server: earlier attempts of gRPC's may have had one.
func (c *call) grpcMayHaveRetried() bool {
	return c.cc != nil && c.grpcRetries == grpcMayRetry && (hidesRetries(c.cc) || retriesItself(c.cc, c.method))
}

// warnMultiplied warns if both gRPC and stagger retry.
func (c *call) warnMultiplied() {
	if c.entry.mode == policy.ModeEnforce && c.options.maxAttempts > 1 && c.grpcMayHaveRetried() {
		c.retrier.warnOnce(&multipliedAttempts, c.entry.name, c.entry.name)
	}
}

// Verdict is a classifier's judgment of an attempt's result: [VerdictByCode], [VerdictRetry], [VerdictNotYet] or [VerdictFinal], with a delay
// if the server names one. The zero value is VerdictByCode.
type Verdict struct {
	means means

	// Delay is how long to wait before another attempt, if the server says so in a way that stagger doesn't read. It is obeyed as RetryInfo
	// is: at least so long, with jitter on top, and if it is longer than the policy's maxPushback, no attempt follows. A
	// grpc-retry-pushback-ms of the server wins. 0: the server's own delay applies, if there is one.
	Delay time.Duration
}

type means uint8

const (
	meansByCode means = iota
	meansRetry
	meansNotYet
	meansFinal
)

// Verdicts of a classifier.
var (
	// VerdictByCode: the policy decides by the status code.
	VerdictByCode = Verdict{}
	// VerdictRetry: the server has failed, and another attempt may help, whatever the code. It is a failure for budget, throttle, breaker and
	// admission, also if the code is OK: a breaker is told UNAVAILABLE then.
	VerdictRetry = Verdict{means: meansRetry}
	// VerdictNotYet: the server is well, but doesn't have the result yet, as when a call polls. Another attempt may bring it, which costs the
	// budget a retry. It is no failure, also if the code is an error: a breaker is told of a success.
	VerdictNotYet = Verdict{means: meansNotYet}
	// VerdictFinal: no other attempt can help.
	VerdictFinal = Verdict{means: meansFinal}
)

// WithClassifier lets classify judge the results of attempts: errors whose code is misleading, replies that tell a failure (err is nil;
// [VerdictRetry]), or replies that mean "not yet" (err is nil; [VerdictNotYet]). If such a reply is not
// retried, the caller gets the reply. Idempotency, maxAttempts, deadline and budget are checked afterwards, as always. Without
// a retry policy for the method, classify is not called.
//
// classify runs in the call, after every attempt that was not abandoned, and must be safe for concurrent use. It must not keep or change
// reply. reply is nil for streams, for which classify is called only after errors, and for an error of an inner interceptor whose attempt
// gRPC has not ended. For [Retrier.Do] it is also nil, and classify is called only after errors.
// [TrailerFromContext] returns the trailer that the server has sent with it.
func WithClassifier(classify func(ctx context.Context, method string, reply any, err error) Verdict) Option {
	return func(r *Retrier) error {
		if classify == nil {
			return errors.New("interceptor: WithClassifier(nil): must be a function")
		}
		r.classifier = classify
		return nil
	}
}

type trailerKey struct{}

// TrailerFromContext returns the trailer of the attempt that a classifier judges. It has all metadata of an immediate error, such as a delay
// in x-ratelimit-reset. Don't change it. For another context, or an attempt without a stream, it is nil.
func TrailerFromContext(ctx context.Context) metadata.MD {
	trailer, _ := ctx.Value(trailerKey{}).(metadata.MD)
	return trailer
}
