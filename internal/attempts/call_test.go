// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
)

// tracePolicies are the policies of the traces: three attempts, backoffs of 100 ms doubled, so 50 and 100 ms with the chance of ½.
func tracePolicies(t testing.TB) map[string]*policy.Policy {
	t.Helper()
	retry := func(change func(*spec.Retry)) spec.Policy {
		r := policytest.UsualRetry()
		r.MaxAttempts, r.RetryableStatusCodes = 3, []codes.Code{codes.Unavailable}
		r.Backoff = backoff.Config{Initial: at(100), Max: 10 * time.Second, Multiplier: 2, Jitter: "FULL"}
		change(&r)
		return spec.Policy{Retry: &r}
	}
	hedge := func(change func(*spec.Hedge)) spec.Policy {
		h := spec.Hedge{MaxAttempts: 3, HedgingDelay: at(50), NonFatalStatusCodes: []codes.Code{codes.Unavailable}}
		change(&h)
		return spec.Policy{Hedge: &h}
	}
	list := map[string]*policy.Policy{}
	for name, of := range map[string]spec.Policy{
		"retry":   retry(func(*spec.Retry) {}),
		"once":    retry(func(r *spec.Retry) { r.Chain = "SUPPRESS" }),
		"beside":  retry(func(r *spec.Retry) { r.PerAttemptTimeout = at(200) }),
		"inplace": retry(func(r *spec.Retry) { r.PerAttemptTimeout, r.OnAttemptTimeout = at(200), "RETRY" }),
		"none":    {},
		"hedge":   hedge(func(*spec.Hedge) {}),
		"hedge0":  hedge(func(h *spec.Hedge) { h.MaxAttempts, h.HedgingDelay = 2, 0 }),
		"quantile": hedge(func(h *spec.Hedge) {
			h.MaxAttempts, h.Quantile = 3, 0.95
		}),
	} {
		p, err := compiled.NewPolicy(of)
		if err != nil {
			t.Fatal(name, err)
		}
		list[name] = p
	}
	return list
}

// Traces of calls, each after a # with its policy, options, and what it is about. Times are in ms; "cut" is the end of a cancelled
// context; "= n" is the answer. After the bar are the calls of budget, slots and breaker (see world).
const traces = `
# retry: sequential retries
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 end 2 UNAV → (retry), wake 170; 170 wake → send 3;
	180 end 3 OK → over succeeded, = 3 | F ( Wf ) - F ( Wf ) + E+
# retry: a server that answers with a final error works: the retry's cost is given back
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2;
	70 end 2 NOT_FOUND → (non_retryable), over non_retryable, = 2 | F ( Wf ) + E-
# retry: pushback delay
	0 start → send 1; 10 end 1 UNAV push=300 → (retry), wake 325; 200 wake → wake 325; 325 wake → send 2;
	330 end 2 UNAV → (retry), wake 380; 380 wake → send 3; 390 end 3 OK → over succeeded, = 3 | F ( Wf ) - F ( Wf ) + E+
# retry unsafe grants=0: undeclared, unsent
	0 start → send 1; 10 end 1 UNAV unsent → (retry), wake 60; 60 wake → send 2;
	70 end 2 UNAV → (not_idempotent), over not_idempotent, = 2 | ( ) F E-
# retry grants=1: unsent hands its permit on
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 61 end 2 UNAV unsent → (retry), wake 161; 161 wake → send 3;
	170 end 3 OK → over succeeded, = 3 | F ( Wf ) ( ) + E+
# retry slots=0: no wait slot
	0 start → send 1; 10 end 1 UNAV → (too_many_waiting), over too_many_waiting, = 1 | F (! E-
# retry slots=0 grants=0: no wait slot comes before no budget
	0 start → send 1; 10 end 1 UNAV → (too_many_waiting), over too_many_waiting, = 1 | F (! E-
# retry slots=0: an attempt that does not wait needs no slot
	0 start → send 1; 10 end 1 UNAV push=0 → (retry), send 2; 20 end 2 OK → over succeeded, = 2 | F Wf + E+
# inplace admission deadline=1000: admission: an attempt is not cancelled for one that would not be answered
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 240 set queue; 250 wake; 900 end 1 OK → over succeeded, = 1
	| < ( Ws ) R a:900 E+
# once inretry: chain
	0 start → send 1; 10 end 1 UNAV → (chain_stop), over chain_stop, = 1 | F E-
# retry breaker refuse: breaker refuses the first attempt
	0 start → over breaker_open, = 0 |
# retry breaker: breaker refuses after the wait
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set refuse; 60 wake → over breaker_open, = 1
	| d:Unavailable F ( Wf ) R E-
# retry admission queue deadline=1000 breaker: admission refuses the call
	0 start → over overloaded, = 0 |
# retry admission breaker refuse: admission, and the breaker refuses the call
	0 start → over breaker_open, = 0 | < >
# retry admission breaker panics=Allow: admission, and the breaker panics
	0 start → panic, abort: over panicked, = 0 | < >
# retry admission queue deadline=2000: admission is asked about the time that is left
	0 start → send 1; 600 end 1 UNAV → (overloaded), over overloaded, = 1 | < > F E-
# retry admission queue: admission without a deadline
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2
	| < > F ( Wf < ) a:10 + E+
# retry admission deadline=1000: admission: an extra attempt after a failure
	0 start → send 1; 5 set queue; 10 end 1 UNAV → (overloaded), over overloaded, = 1 | < > F E-
# retry admission deadline=1000: admission: an attempt that was decided on is sent, whatever happens in the backoff
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set queue; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2
	| < > F ( Wf < ) a:10 + E+
# beside admission deadline=1000: admission: an extra attempt beside a slow one
	0 start → send 1, wake 200; 5 set queue; 200 wake → (overloaded); 900 end 1 OK → over succeeded, = 1 | < a:900 E+
# beside admission deadline=1000: admission: the deadline passes
	0 start → send 1, wake 200; 5 set queue; 200 wake → (overloaded); 1000 stop deadline_exceeded;
	1001 end 1 cut → over overloaded, = 1 | < > F E-
# beside admission: admission: what is answered, what is refused and what is lost
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550;
	550 wake → send 3; 600 end 2 NOT_FOUND → (non_retryable), cancel 1 3; 601 end 1 EXHAUSTED;
	602 end 3 cut → over non_retryable, = 2 | < ( Ws < ) ( Ws < ) a:350 - >f > - E-
# retry admission: admission: a server without resources
	0 start → send 1; 10 end 1 EXHAUSTED → (non_retryable), over non_retryable, = 1 | < >f E-
# retry admission deadline=1000: admission: a deadline that is missed
	0 start → send 1; 1000 stop deadline_exceeded; 1000 end 1 DEADLINE → over deadline_exceeded, = 1 | < >d E-
# retry admission deadline=1000: admission: a deadline that another attempt misses
	0 start → send 1; 500 end 1 UNAV → (retry), wake 550; 550 wake → send 2; 1000 stop deadline_exceeded;
	1000 end 2 DEADLINE → over deadline_exceeded, = 2 | < > F ( Wf < ) > - E-
# retry admission deadline=1000: admission: a server that knows the deadline, by its own clock
	0 start → send 1; 980 end 1 DEADLINE → (non_retryable), over non_retryable, = 1 | < >d E-
# retry admission deadline=1000: admission: a server's own deadline
	0 start → send 1; 500 end 1 DEADLINE → (non_retryable), over non_retryable, = 1 | < > E-
# retry admission: admission: a stream's first message
	0 start → send 1; 10 commit 1 message → true; 20 heard 1; 30 heard 1; 900 end 1 OK → over succeeded, = 1 | < a:20 E+
# retry admission: admission: a stream's first message after it was committed
	0 start → send 1; 10 commit 1 context → true; 20 heard 1; 20 heard 2; 900 end 1 UNAV → (committed), over committed (context), = 1
	| < a:20 F E-
# retry: closed for new attempts in the wait
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set off; 20 wake → over closed, = 1 | F ( Wf ) R E-
# retry connect=3000: closed for new attempts in the wait for a connection
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 51 set off; 51 wake → over closed, = 1
	| ( )
# retry: closed for new attempts before the first has failed
	0 start → send 1; 5 set off; 10 end 1 UNAV → (closed), over closed, = 1 | F E-
# retry: closed for new attempts, and no other would follow anyway
	0 set off; 0 start → send 1; 10 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1 | E-
# retry: mode OFF during the wait
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set mode_off; 20 wake → over mode_off, = 1; 30 wake | F ( Wf ) R E-
# beside deadline=1000: mode OFF, and a server that is slow
	0 set mode_off; 0 start → send 1, wake 200; 200 wake → (mode_off); 1000 stop deadline_exceeded;
	1000 end 1 cut → over mode_off, = 1 | F E-
# retry observe slots=0: mode OBSERVE: a retry
	0 start → send 1; 10 end 1 UNAV → (retry announced), over mode_off, = 1 | F E-
# hedge observe slots=0: mode OBSERVE: no answer beside the slow one
	0 start → send 1, wake 50; 50 wake → (hedge announced); 400 end 1 OK → over succeeded, = 1 | E+
# beside observe: mode OBSERVE: an answer beside the slow one is announced
	0 start → send 1, wake 200; 200 wake → (hedge announced); 400 end 1 OK → over succeeded, = 1 | E+
# beside observe: mode OBSERVE: an answer that no server has given
	0 start → send 1, wake 200; 200 wake → (hedge announced); 400 end 1 OK unseen → over succeeded, = 1
# beside observe: mode OBSERVE: one attempt is announced a call
	0 start → send 1, wake 200; 200 wake → (hedge announced); 400 end 1 UNAV → (mode_off), over mode_off, = 1 | F E-
# hedge observe: mode OBSERVE: what fails for good says so
	0 start → send 1, wake 50; 50 wake → (hedge announced); 60 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1 | E-
# beside observe grants=0: mode OBSERVE: the budget is not asked
	0 start → send 1, wake 200; 200 wake → (hedge announced); 300 end 1 UNAV → (mode_off), over mode_off, = 1 | F E-
# inplace observe: mode OBSERVE: no attempt makes way
	0 start → send 1, wake 200; 200 wake → (retry announced); 250 wake; 900 end 1 OK → over succeeded, = 1 | E+
# retry observe: mode OBSERVE: no stream is resumed
	0 start → send 1; 10 commit 1 message → true; 2000 end 1 UNAV resumes → (retry announced), over mode_off, = 1 | F E-
# retry observe: mode OBSERVE: the server's pushback
	0 start → send 1; 10 end 1 UNAV push=-1 → (pushback_stop), over pushback_stop, = 1 | F E-
# hedge observe: mode OBSERVE: a cancelled call
	0 start → send 1, wake 50; 50 wake → (hedge announced); 60 stop cancelled; 61 end 1 cut → over cancelled, = 1 | E-
# hedge observe: mode OBSERVE: a callback panics
	0 start → send 1, wake 50; 50 wake → (hedge announced); 60 abort → over panicked, = 0
# beside observe: mode OBSERVE becomes OFF
	0 start → send 1, wake 200; 100 set mode_off; 200 wake → (mode_off); 400 end 1 OK → over succeeded, = 1 | E+
# hedge: closed for new attempts, and what runs is answered
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 set off; 100 wake → (closed); 110 end 2 UNAV → (closed);
	120 end 1 OK → over succeeded, = 1 | Ws - F E+
# inplace: closed for new attempts while one makes way
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 set off;
	251 end 1 cut → over closed, = 1 | ( Ws F ) R E-
# inplace: closed for new attempts before one has made way
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 set off; 251 wake; 252 wake;
	253 end 1 cut → over closed, = 1 | ( Ws ) R F E-
# hedge: an attempt is not slow any more once a later one was sent
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 UNAV → (hedge), send 3;
	70 end 3 UNAV → (attempts_exhausted); 100 wake; 110 end 2 OK → over succeeded, = 2 | Ws F Wf - F - E+
# retry: closed for new attempts: no stream is resumed
	0 start → send 1; 10 commit 1 message → true; 20 set off; 2000 end 1 UNAV resumes → (closed), over closed, = 1 | F E-
# retry: cancel in the wait
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 stop cancelled → over cancelled, = 0, last Unavailable; 60 wake
	| F ( Wf ) R E-
# retry deadline=500: an answer at the deadline counts
	0 start → send 1; 500 stop deadline_exceeded; 500 end 1 OK → over succeeded, = 1 | E+
# retry: connection closed in the wait
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 stop closed → over closed, = 1 | F ( Wf ) R E-
# inplace: connection closed when the reply that meant not yet is gone
	0 start → send 1, wake 200; 10 end 1 OK notyet → (retry), wake 60; 60 wake → send 2, wake 260; 260 wake → (retry), wake 360;
	360 wake → cancel 2; 361 stop closed; 362 end 2 cut → over closed, = 0 | ( Wf ) ( Ws ) R F - E-
# retry: an inner interceptor ends the attempt's context, and the call's goes on
	0 start → send 1; 10 end 1 cut → (non_retryable), over non_retryable, = 1 | E-
# retry: a reply that counts as a failure
	0 start → send 1; 10 end 1 OK again → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2 | F ( Wf ) + E+
# retry grants=0: a reply that counts as a failure as the last word
	0 start → send 1; 10 end 1 OK again → (budget_exhausted), over budget_exhausted, = 1 | F ( w ) E-
# retry: a reply that means not yet
	0 start → send 1; 10 end 1 OK notyet → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2 | ( Wf ) + E+
# retry: an error that means not yet
	0 start → send 1; 10 end 1 NOT_FOUND notyet → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2 | ( Wf ) + E+
# retry grants=0: not yet as the last word
	0 start → send 1; 10 end 1 OK notyet → (budget_exhausted), over budget_exhausted, = 1 | ( w ) E+
# retry breaker: what a breaker is told
	0 start → send 1; 10 end 1 OK again → (retry), wake 60; 60 wake → send 2; 70 end 2 NOT_FOUND notyet → (retry), wake 170; 170 wake → send 3;
	180 end 3 OK → over succeeded, = 3 | d:Unavailable F ( Wf ) - d:OK ( Wf ) + d:OK E+
# retry connect=3000: waits for a connection
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 51 wake → wake 3001 or connected;
	700 wake up → wake 750; 750 wake → send 2; 760 end 2 OK → over succeeded, = 2 | ( Wr ) + E+
# retry connect=3000: a short wait for a connection is followed by one backoff
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 51 wake → wake 3001 or connected;
	81 wake up → wake 131; 131 wake → send 2; 140 end 2 OK → over succeeded, = 2 | ( Wr ) + E+
# retry connect=3000: connected at the end of the wait: the backoff is no wait for a connection
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 2990 wake up → wake 3040;
	3010 wake → wake 3040; 3040 wake → send 2; 3050 end 2 OK → over succeeded, = 2 | ( Wr ) + E+
# retry later=2 connect=3000: everything fails, and the call asks again
	0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 51 wake → wake 101; 101 wake → send 2; 110 end 2 OK → over succeeded, = 2
	| F ( l l Ww ) + E+
# retry later=99 connect=100: everything fails for longer than the call waits
	0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 51 wake → wake 101; 101 wake → over failing_everywhere, = 1 | F ( l l l ) E-
# retry later=99 connect=3000: everything fails, then the channel is down: it is one wait
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 40 set down; 60 wake → wake 3010 or connected; 3010 wake → over not_connected, = 1
	| F ( l ) E-
# retry later=99 connect=3000 deadline=200: the wait ends before the deadline
	0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 51 wake → wake 101; 101 wake → over failing_everywhere, = 1 | F ( l l l ) E-
# retry later=1: a call that doesn't wait
	0 start → send 1; 1 end 1 UNAV → (failing_everywhere), over failing_everywhere, = 1 | F ( l ) E-
# retry later=1 connect=1000: the server asks for a delay that is longer than the wait
	0 start → send 1; 1 end 1 UNAV push=1500 → (failing_everywhere), over failing_everywhere, = 1 | F ( l ) E-
# retry later=1 connect=1000: cancel in the wait
	0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 20 stop cancelled → over cancelled, = 0, last Unavailable | F ( l ) E-
# hedge later=1 connect=1000: a hedging policy waits with a backoff
	0 start → send 1, wake 50; 1 end 1 UNAV → (hedge), wake 26; 26 wake → send 2, wake 76; 30 end 2 OK → over succeeded, = 2
	| F l ( Ww ) + E+
# retry: the caller lets gRPC wait for the connection
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 51; 51 wake → send 2; 900 end 2 OK → over succeeded, = 2 | ( ) E+
# retry connect=1000: the wait for a connection goes on if no server was reached
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 1001 or connected; 900 wake up → wake 950; 950 wake → send 2;
	960 set down; 1140 end 2 UNAV unsent → (not_connected), over not_connected, = 2 | ( Wr ) ( ) R
# retry connect=1000: the wait for a connection begins anew when a server was reached
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 1001 or connected; 900 wake up → wake 950; 950 wake → send 2;
	960 set down; 1140 end 2 UNAV → (retry), wake 2140 or connected; 2140 wake → over not_connected, = 2 | ( Wr ) - F ( Wf ) R E-
# retry connect=3000 deadline=1000: a connection is waited for as long as an attempt is of use
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 999 or connected; 999 wake → over not_connected, = 1
	| ( )
# retry connect=3000 deadline=1000: connected shortly before the deadline: half of what is left is for the attempt
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 999 or connected; 967 wake up → wake 983; 983 wake → send 2;
	999 end 2 OK → over succeeded, = 2 | ( Wr ) + E+
# hedge connect=1000 slots=0: no wait slot for the wait for a connection
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 set down; 70 end 1 UNAV → (too_many_waiting), wake 100;
	80 end 2 OK → over succeeded, = 2 | Ws F Wf (! R + E+
# beside connect=3000: a hedge waits for a connection while others run
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 210 set down; 250 wake → wake 350; 330 wake up → wake 380;
	380 wake → send 2, wake 580; 390 end 2 OK → cancel 1; 841 end 1 cut → over succeeded, = 2 | ( Ws ) + F E+
# hedge: an attempt that waits for a connection is not slow, and its time begins when it has one
	0 start → send 1, wake 50; 0 set connecting; 50 wake → wake 100; 100 wake → wake 150; 120 set up; 150 wake → wake 200;
	200 wake → (hedge), send 2, wake 250; 210 end 1 OK → cancel 2; 211 end 2 cut → over succeeded, = 1 | Ws - E+
# hedge: an attempt that waits for a connection, and is answered in time
	0 start → send 1, wake 50; 0 set connecting; 50 wake → wake 100; 60 set up; 100 wake → wake 150; 140 end 1 OK → over succeeded, = 1
	| E+
# beside: an attempt that waits for a connection until the deadline is never slow
	0 start → send 1, wake 200; 0 set connecting; 200 wake → wake 400; 300 set up; 310 end 1 UNAV unsent → (retry), wake 360;
	360 wake → send 2, wake 560; 370 end 2 OK → over succeeded, = 2 | ( ) E+
# beside deadline=400: no look after the deadline while an attempt waits for a connection
	0 start → send 1, wake 200; 0 set connecting; 200 wake; 400 stop deadline_exceeded;
	400 end 1 cut unseen → over deadline_exceeded, = 1 |
# hedge0: a delay of 0 doesn't loop while there is no connection
	0 start → send 1, wake 0; 0 set connecting; 0 wake → wake 10; 5 wake → wake 10; 10 wake → wake 20; 15 set up;
	20 wake → (hedge), send 2; 21 end 1 OK → cancel 2; 22 end 2 cut → over succeeded, = 1 | Ws - E+
# hedge: a channel that is down has no connection either
	0 start → send 1, wake 50; 0 set down; 50 wake → wake 100; 100 wake up → wake 150; 150 wake → (hedge), send 2, wake 200;
	160 end 2 OK → cancel 1; 161 end 1 cut → over succeeded, = 2 | Ws + E+
# retry: an answer that no server has seen is no success for the budget
	0 start → send 1; 1 end 1 OK unseen → over succeeded, = 1 |
# retry: an error that no server has seen is no failure for the budget
	0 start → send 1; 1 end 1 NOT_FOUND unseen → (non_retryable), over non_retryable, = 1 |
# retry: nor is one that is retried, and the cost of an extra attempt that a cache answers comes back
	0 start → send 1; 1 end 1 UNAV unseen → (retry), wake 51; 51 wake → send 2; 52 end 2 OK unseen → over succeeded, = 2
	| ( Wf ) R
# retry: one attempt that a server has seen makes the call one
	0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 51 wake → send 2; 52 end 2 NOT_FOUND unseen → (non_retryable),
	over non_retryable, = 2 | F ( Wf ) R E-
# inplace: an attempt that makes way, and that no server has seen, is no failure
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut unseen → send 2, wake 451;
	260 end 2 OK → over succeeded, = 2 | ( Ws ) + E+
# retry connect=3000: never connected
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 3001 wake → over not_connected, = 1
	| ( )
# retry connect=3000: in an outage of 4 s, a connection is waited for until that is 5 s old
	0 start → send 1; 0 set down 4000; 1 end 1 UNAV unsent → (retry), wake 1000 or connected; 1000 wake → over not_connected, = 1
	| ( )
# retry connect=3000: in an outage of 5 s, no connection is waited for
	0 start → send 1; 0 set down 4999; 1 end 1 UNAV unsent → (not_connected), over not_connected, = 1 | ( )
# retry connect=3000: connected before the outage is that old
	0 start → send 1; 0 set down 4000; 1 end 1 UNAV unsent → (retry), wake 1000 or connected; 81 wake up → wake 131;
	131 wake → send 2; 140 end 2 OK → over succeeded, = 2 | ( Wr ) + E+
# hedge connect=1000 slots=0: nor does it take a wait slot
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 set down 5000; 70 end 1 UNAV → (not_connected), wake 100;
	80 end 2 OK → over succeeded, = 2 | Ws F Wf R + E+
# retry failfast=1: the caller wants no wait for a connection
	0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (not_connected), over not_connected, = 1 | ( )
# retry failfast=1: nor that, and the channel is up
	0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 51 wake → send 2; 60 end 2 OK → over succeeded, = 2 | F ( Wf ) + E+
# hedge connect=1000: a loser's end does not forget that a connection is waited for
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 commit 1 message → true, cancel 2; 60 set down;
	70 end 1 UNAV resumes → (hedge), wake 1070 or connected; 80 end 2 cut → wake 1070 or connected;
	1070 wake → over not_connected, = 1 | Ws F ( Wf - ) R E-
# beside: timeout, beside
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 260 end 2 OK → cancel 1;
	261 end 1 cut → over succeeded, = 2 | ( Ws ) + F E+
# beside grants=0 deadline=1000: timeout, budget empty: the attempt goes on
	0 start → send 1, wake 200; 200 wake → (budget_exhausted); 1000 stop deadline_exceeded;
	1000 end 1 cut → over budget_exhausted, = 1 | ( w ) F E-
# beside breaker: attempts that hang until the caller is gone count as failures
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 300 stop cancelled;
	300 end 1 cut; 300 end 2 cut → over cancelled, = 2 | ( Ws ) F d:DeadlineExceeded - d:Canceled E-
# beside breaker deadline=1000: timeout, the breaker opens in the wait: the attempt goes on
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 210 set refuse; 250 wake; 1000 stop deadline_exceeded;
	1000 end 1 cut → over breaker_open, = 1 | ( Ws ) R F d:DeadlineExceeded E-
# inplace breaker deadline=1000: in place, the breaker opens in the wait: the attempt goes on
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 210 set refuse; 250 wake; 300 end 1 OK → over succeeded, = 1
	| ( Ws ) R d:OK E+
# inplace: timeout, in place
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut → send 2, wake 451;
	260 end 2 OK → over succeeded, = 2 | ( Ws F ) + E+
# inplace: in place, the answer comes while it is cancelled
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 250 end 1 OK → over succeeded, = 1 | ( Ws ) R E+
# inplace deadline=5000: last attempt has no timeout
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 250 end 1 cut → send 2, wake 450;
	450 wake → (retry), wake 550; 550 wake → cancel 2; 550 end 2 cut → send 3; 5000 stop deadline_exceeded;
	5000 end 3 cut → over deadline_exceeded, = 3 | ( Ws F ) ( Ws F - ) - E-
# hedge: hedging
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 100 wake → (hedge), send 3; 120 end 2 OK → cancel 1 3;
	121 end 1 cut; 122 end 3 UNAV → over succeeded, = 2 | Ws Ws - - E+
# quantile quantile=20: hedging by the quantile
	0 start → send 1, wake 20; 20 wake → (hedge), send 2, wake 40; 30 end 1 OK → cancel 2;
	31 end 2 cut → over succeeded, = 1 | Ws - E+
# hedge: hedging, fatal
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 NOT_FOUND → (non_retryable), cancel 2;
	61 end 2 cut → over non_retryable, = 1 | Ws - E-
# hedge: hedging, what a loser says after a fatal answer is ignored
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 NOT_FOUND → (non_retryable), cancel 2;
	60 end 2 UNAV → over non_retryable, = 1 | Ws - E-
# hedge: hedging, pushback delays the next, even if another attempt fails then
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 UNAV push=300 → (hedge), wake 375;
	70 end 2 UNAV → (hedge), wake 375; 360 wake → wake 375; 375 wake → send 3; 380 end 3 OK → over succeeded, = 3
	| Ws F ( Wf - ) R F Wf ( ) + E+
# hedge: a loser that was not sent costs nothing
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 OK → cancel 2;
	61 end 2 UNAV unsent → over succeeded, = 1 | Ws R E+
# hedge grants=1: hedge brings not yet as the last word
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 UNAV → (budget_exhausted), wake 100;
	70 end 2 OK notyet → (budget_exhausted), over budget_exhausted, = 2 | Ws F w - w E+
# hedge breaker: hedge panics
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 abort → over panicked, = 0 | Ws - d:Unknown d:Unknown
# hedge: stream: hedges, the first message wins
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 commit 2 message → true, cancel 1; 61 commit 1 message → false;
	62 end 1 cut; 900 end 2 OK → over succeeded, = 2 | Ws + E+
# inplace: stream: in place, the message comes too late
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 250 commit 1 message → false; 250 heard 1;
	251 end 1 cut → send 2, wake 451; 260 commit 2 message → true; 260 heard 2; 900 end 2 OK → over succeeded, = 2
	| ( Ws F ) + E+
# beside admission: stream: committed before the first message
	0 start → send 1, wake 200; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2, wake 260; 70 commit 2 context → true; 160 heard 2;
	20000 end 2 OK → over succeeded, = 2 | < > F ( Wf < ) a:100 + E+
# beside: stream: an attempt whose first message has come is not slow
	0 start → send 1, wake 200; 190 heard 1; 200 wake; 300 commit 1 message → true; 900 end 1 OK → over succeeded, = 1 | E+
# retry admission stream: stream: a server answers once it has the whole request
	0 start → send 1; 60 await; 70 await; 100 heard 1; 900 end 1 OK → over succeeded, = 1 | < a:40 E+
# retry admission stream: stream: an answer before the request is no measure
	0 start → send 1; 100 heard 1; 900 end 1 OK → over succeeded, = 1 | < >a E+
# beside stream: stream: an attempt is watched from the moment at which the application waits for a response to the whole request
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 100 await → wake 300; 150 await → wake 300;
	290 heard 2; 900 end 2 OK → over succeeded, = 2 | F ( Wf ) + E+
# beside upload: stream: attempts of an upload are never slow
	0 start → send 1; 100 await; 900 end 1 OK → over succeeded, = 1 | E+
# beside alone: alone: a slow attempt makes way
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut → send 2, wake 451;
	260 end 2 OK → over succeeded, = 2 | ( Ws F ) + E+
# beside alone grants=0: alone: a slow attempt goes on if no other may follow
	0 start → send 1, wake 200; 200 wake → (budget_exhausted); 900 end 1 OK → over succeeded, = 1 | ( w ) E+
# hedge alone: alone: a hedging policy sends the next attempt after a failure
	0 start → send 1; 60 end 1 UNAV → (retry), send 2; 70 end 2 UNAV → (retry), send 3; 900 end 3 OK → over succeeded, = 3
	| F Wf - F Wf - E+
# hedge alone: alone: a hedging policy, fatal
	0 start → send 1; 60 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1 | E-
# retry: stream: buffer full
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 65 commit 2 buffer_full → true;
	70 end 2 UNAV → (committed), over committed (buffer_full), = 2 | F ( Wf ) - F E-
# retry deadline=1000: a deadline that is missed
	0 start → send 1; 1000 stop deadline_exceeded; 1000 end 1 DEADLINE → over deadline_exceeded, = 1 | E-
# beside deadline=1000: a deadline that one of two attempts misses, and the other is answered
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 1000 stop deadline_exceeded;
	1000 end 1 DEADLINE; 1000 end 2 OK → over succeeded, = 2 | ( Ws ) - E+
# retry: resumption after a long time: the backoff starts anew, and the attempt is free
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 commit 2 message → true;
	20000 end 2 UNAV resumes progress → (retry), wake 20050; 20050 wake → send 3; 20060 end 3 OK → over succeeded, = 3
	| F ( Wf ) R ( ) E+
# retry: a quiet stream that is cut after ten seconds or more makes progress without a message, and is no failure
	0 start → send 1; 10 commit 1 message → true; 60000 end 1 UNAV resumes → (retry), wake 60050; 60050 wake → send 2;
	120000 end 2 UNAV resumes → (retry), wake 120050; 120050 wake → send 3; 180000 end 3 UNAV resumes → (retry), wake 180050;
	180050 wake → send 4; 190050 end 4 UNAV resumes → (retry), wake 190100; 190100 wake → send 5;
	200000 end 5 UNAV resumes → (retry), wake 200100; 200100 wake → send 6;
	200110 end 6 UNAV resumes → (attempts_exhausted), over attempts_exhausted, = 6
	| ( ) ( ) ( ) ( ) F ( Wf ) - F E-
# retry: an attempt that no server has seen is no progress, however long it ran
	0 start → send 1; 10 commit 1 message → true; 60000 end 1 UNAV resumes → (retry), wake 60050; 60050 wake → send 2;
	80000 end 2 UNAV unsent resumes → (retry), wake 80100; 80100 wake → send 3;
	100000 end 3 UNAV unsent resumes → (attempts_exhausted), over attempts_exhausted, = 3 | ( ) ( ) E-
# retry: resumption
	0 start → send 1; 10 commit 1 message → true; 2000 end 1 UNAV resumes progress → (retry), wake 2050; 2050 wake → send 2;
	2060 commit 2 message → true; 2100 end 2 UNAV resumes progress → (retry), wake 2200; 2200 wake → send 3;
	2210 end 3 UNAV resumes → (retry), wake 2410; 2410 wake → send 4;
	2420 end 4 UNAV resumes → (attempts_exhausted), over attempts_exhausted, = 4 | F ( Wf ) - F ( Wf ) - F ( Wf ) - F E-
# retry: a resumption begins its backoff anew if the stream ran for ten seconds
	0 start → send 1; 10 commit 1 message → true; 2000 end 1 UNAV resumes progress → (retry), wake 2050; 2050 wake → send 2;
	2060 commit 2 message → true; 12049 end 2 UNAV resumes progress → (retry), wake 12149; 12149 wake → send 3;
	12160 commit 3 message → true; 22149 end 3 UNAV resumes progress → (retry), wake 22199; 22199 wake → send 4;
	22210 end 4 OK → over succeeded, = 4 | F ( Wf ) - F ( Wf ) R ( ) E+
# retry: headers are no progress of a stream that is resumed
	0 start → send 1; 10 commit 1 headers → true; 20 end 1 UNAV resumes → (retry), wake 70; 70 wake → send 2;
	80 commit 2 headers → true; 90 end 2 UNAV resumes → (retry), wake 190; 190 wake → send 3; 200 commit 3 headers → true;
	210 end 3 UNAV resumes → (attempts_exhausted), over attempts_exhausted, = 3 | F ( Wf ) - F ( Wf ) - F E-
# retry: a message after the headers is progress
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 commit 2 headers → true;
	90 end 2 UNAV resumes progress → (retry), wake 190; 190 wake → send 3; 200 end 3 UNAV resumes → (retry), wake 400;
	400 wake → send 4; 410 end 4 OK → over succeeded, = 4 | F ( Wf ) - F ( Wf ) - F ( Wf ) + E+
# hedge breaker panics=d:Unavailable: a breaker panics at an attempt's end
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 2 UNAV → panic, abort: over panicked, = 0;
	70 end 1 OK | Ws - d:Unavailable d:Unknown
# hedge breaker panics=d:OK: a breaker panics at the end of an attempt that has won: the one that has lost is cancelled
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 2 OK → panic, abort: over panicked, = 0;
	70 end 1 cut | Ws + d:OK d:Unknown
# retry breaker panics=Allow: a breaker panics before the first attempt
	0 start → panic, abort: over panicked, = 0; 10 wake |
# quantile breaker panics=Quantile: a latency panics before the first attempt
	0 start → panic, abort: over panicked, = 0 | d:Unknown
# retry breaker panics=): a wait limit panics when the next attempt is sent
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → panic, abort: over panicked, = 0
	| d:Unavailable F ( Wf ) - d:Unknown
# hedge breaker panics=Record: a latency panics at an answer
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 2 OK → panic, abort: over panicked, = 0
	| Ws d:Unknown - d:Unknown
# inplace breaker panics=F: a budget panics at an abandoned attempt
	0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut → panic, abort: over panicked, = 0
	| ( Ws F d:Unknown R )
# retry panics=): an observer panics, and a wait limit then
	0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 abort → over panicked, = 0 | F ( Wf R )
# hedge: stream: a message after the caller has gone makes its attempt the answer, not one that fails beside it
	0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 100 wake → (hedge), send 3; 105 stop cancelled;
	105 end 3 NOT_FOUND; 105 commit 1 message → true, cancel 2; 106 end 2 UNAV;
	107 end 1 cut → over cancelled, = 1, last NotFound | Ws Ws - - E-
# beside: followed, with a stop: the pending attempt is given up
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550;
	460 end 1 UNAV push=-1 → (pushback_stop); 550 wake; 560 end 2 OK → over succeeded, = 2 | ( Ws ) ( Ws F ) R - E+
# beside deadline=900: followed, with a pushback beyond the deadline: the pending attempt is given up
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550;
	460 end 1 UNAV push=500 → (followed); 550 wake; 560 end 2 OK → over succeeded, = 2 | ( Ws ) ( Ws F ) R - E+
# beside deadline=986: followed, with a pushback that ends when an attempt is just of use
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550;
	460 end 1 UNAV push=500 → (followed), wake 985; 985 wake → send 3; 985 end 3 OK → cancel 2;
	985 end 2 cut → over succeeded, = 3 | ( Ws ) ( Ws F ) + F - E+
# beside: a server says at once, and an earlier attempt's backoff does not hold that up
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 260 end 2 UNAV → (retry), wake 360;
	270 end 1 UNAV push=0 → (retry), send 3; 280 end 3 OK → over succeeded, = 3 | ( Ws ) - F ( Wf ) R F Wf + E+
# beside: followed, with a pushback: the pending attempt waits for it
	0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550;
	460 end 1 UNAV push=500 → (followed), wake 985; 550 wake → wake 985; 985 wake → send 3; 990 end 3 OK → cancel 2;
	991 end 2 cut → over succeeded, = 3 | ( Ws ) ( Ws F ) + F - E+
`

func TestTraces(t *testing.T) {
	t.Parallel()
	list := tracePolicies(t)
	for _, text := range strings.Split(traces, "# ")[1:] {
		head, text, _ := strings.Cut(text, "\n")
		options, name, _ := strings.Cut(head, ": ")
		policy, options, _ := strings.Cut(options, " ")
		trace, told, _ := strings.Cut(text, "|")
		for suffix, origin := range map[string]time.Duration{"": 0, "_before_zero": -30 * 365 * 24 * time.Hour} {
			t.Run(strings.ReplaceAll(name, " ", "_")+suffix, func(t *testing.T) {
				t.Parallel()
				p := newPlay(list[policy], options, origin)
				p.run(trace)
				for i, want := range strings.Split(trace, ";") {
					if want := strings.Join(strings.Fields(want), " "); p.steps[i] != want {
						t.Errorf("got  %s\nwant %s", p.steps[i], want)
					}
				}
				if got := strings.Join(p.told, " "); got != strings.TrimSpace(told) {
					t.Errorf("told %s\nwant %s", got, told)
				}
				if left := p.left(); p.call.Over() && left != nil {
					t.Error("not given back:", left)
				}
			})
		}
	}
}

// The hedging delay is the latency quantile, if it is known, within its bounds.
func TestSlowAfter(t *testing.T) {
	t.Parallel()
	for quantile, want := range map[int]int{0: 50, 5: 10, 20: 20, 80: 80, 300: 80} {
		p, err := compiled.NewPolicy(spec.Policy{Hedge: &spec.Hedge{
			MaxAttempts: 2, HedgingDelay: at(50), Quantile: 0.95, MinDelay: at(10), MaxDelay: at(80),
			NonFatalStatusCodes: []codes.Code{codes.Unavailable},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := SlowAfter(p, known{&world{quantile: at(quantile)}}, false); got != at(want) {
			t.Errorf("a quantile of %d ms: %v; want %d ms", quantile, got, want)
		}
	}
}

func TestHedge(t *testing.T) {
	t.Parallel()
	p := newPlay(tracePolicies(t)["beside"], "", 0)
	p.run("0 start; 10 end 1 UNAV; 60 wake; 260 wake; 360 wake")
	for n, want := range map[int]bool{1: false, 2: false, 3: true, 4: false} { // 1 has ended, 2 is a retry, 3 runs in parallel
		if got := p.call.Hedge(n); got != want {
			t.Errorf("attempt %d: a hedge %v; want %v", n, got, want)
		}
	}
	p.run("370 end 3 OK; 371 end 2 cut")
	if got := p.call.End().Hedges; got != 1 {
		t.Errorf("%d hedges; want 1", got)
	}
}

func TestEndGaveUp(t *testing.T) {
	t.Parallel()
	always, never, retried := [2]bool{true, true}, [2]bool{false, false}, [2]bool{false, true} // after one attempt, and after two
	want := map[policy.Reason][2]bool{
		policy.ReasonNonRetryable: never, policy.ReasonCommitted: never, policy.ReasonAttemptsExhausted: retried,
		policy.ReasonPushbackStop: always, policy.ReasonNotIdempotent: never, policy.ReasonFollowed: never, policy.ReasonChainStop: never,
		policy.ReasonBreakerOpen: always, policy.ReasonOverloaded: always, policy.ReasonSlowEverywhere: always, policy.ReasonNotProvenFast: always,
		policy.ReasonDeadlineTooClose: always, policy.ReasonTooManyWaiting: always, policy.ReasonBudgetExhausted: always,
		policy.ReasonFailingEverywhere: always,
		policy.ReasonRetry:             never, policy.ReasonHedge: never, policy.ReasonSucceeded: never, policy.ReasonDeadlineExceeded: retried,
		policy.ReasonCancelled: never, policy.ReasonClosed: never, policy.ReasonNotConnected: always, policy.ReasonModeOff: never,
	}
	for _, reason := range decision.Reasons() {
		got := [2]bool{(&End{Reason: reason, Attempts: 1}).GaveUp(), (&End{Reason: reason, Attempts: 2}).GaveUp()}
		if row, ok := want[reason]; !ok || got != row {
			t.Errorf("%s: after one attempt and two %v; want %v, %v", reason, got, row, ok)
		}
	}
}

// What the service below says holds for the caller above, also if the call had one attempt, and whatever its policy lists. A handler may go
// on after an error that speaks of the request.
func TestEndGaveUp_Forbidden(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason policy.Reason
		code   codes.Code
		want   bool
	}{
		{policy.ReasonNonRetryable, codes.Unavailable, true},
		{policy.ReasonNonRetryable, codes.NotFound, false},
		{policy.ReasonCommitted, codes.Unavailable, true},
		{policy.ReasonAttemptsExhausted, codes.Unavailable, true},
		{policy.ReasonCancelled, codes.Canceled, false},
	} {
		end := End{Reason: row.reason, Attempts: 1, Err: status.Error(row.code, ""), Forbidden: true}
		if end.GaveUp() != row.want {
			t.Errorf("%s, %s: %v", row.reason, row.code, end.GaveUp())
		}
	}
}
