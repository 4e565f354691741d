// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// policies of the traces: three attempts, backoffs of 100 ms doubled, so 50 and 100 ms with the chance of ½.
func policies(t testing.TB) map[string]*decision.Policy {
	t.Helper()
	retry := func(change func(*policy.RetrySpec)) policy.Spec {
		r := policy.DefaultRetry()
		r.MaxAttempts, r.Codes = 3, []codes.Code{codes.Unavailable}
		r.Backoff = policy.Backoff{Initial: at(100), Max: 10 * time.Second, Multiplier: 2, Jitter: policy.JitterFull}
		change(&r)
		return policy.Spec{Retry: &r}
	}
	hedge := func(change func(*policy.HedgeSpec)) policy.Spec {
		h := policy.HedgeSpec{MaxAttempts: 3, Delay: at(50), NonFatal: []codes.Code{codes.Unavailable}}
		change(&h)
		return policy.Spec{Hedge: &h}
	}
	list := map[string]*decision.Policy{}
	for name, spec := range map[string]policy.Spec{
		"retry": retry(func(*policy.RetrySpec) {}),
		"once":  retry(func(r *policy.RetrySpec) { r.Chain = policy.ChainSuppress }),
		"costly": retry(func(r *policy.RetrySpec) {
			r.Codes = []codes.Code{codes.Unavailable, codes.Aborted}
			r.PerCode = []policy.CodeSpec{{Codes: []codes.Code{codes.Aborted}, CostFactor: 2}}
		}),
		"headers": retry(func(r *policy.RetrySpec) { r.CommitOnHeaders = true }),
		"beside":  retry(func(r *policy.RetrySpec) { r.PerAttemptTimeout = at(200) }),
		"inplace": retry(func(r *policy.RetrySpec) { r.PerAttemptTimeout, r.CancelOnTimeout = at(200), true }),
		"none":    {},
		"hedge":   hedge(func(*policy.HedgeSpec) {}),
		"hedge2":  hedge(func(h *policy.HedgeSpec) { h.MaxAttempts = 2 }),
		"quantile": hedge(func(h *policy.HedgeSpec) {
			h.MaxAttempts, h.Quantile = 3, 0.95
		}),
	} {
		p, err := policy.New(spec)
		if err != nil {
			t.Fatal(name, err)
		}
		list[name] = decision.New(p.Spec())
	}
	return list
}

// Times are in ms; "cut" is the end of a cancelled context; "= n" is the answer. After the bar are the calls of budget, slots
// and breaker (see world).
var traces = []struct{ name, policy, options, trace, told string }{
	{
		"sequential retries", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 end 2 UNAV → (retry), wake 170; 170 wake → send 3; 180 end 3 OK → over succeeded, = 3`,
		"S F ( Wf ) - F ( Wf ) + E+",
	},
	{
		"pushback delay", "retry", "",
		`0 start → send 1; 10 end 1 UNAV push=300 → (retry), wake 325; 200 wake → wake 325; 325 wake → send 2; 330 end 2 UNAV → (retry), wake 380; 380 wake → send 3; 390 end 3 OK → over succeeded, = 3`,
		"S F ( Wf ) - F ( Wf ) + E+",
	},
	{
		"undeclared, unsent", "retry", "unsafe grants=0",
		`0 start → send 1; 10 end 1 UNAV unsent → (retry), wake 60; 60 wake → send 2; 70 end 2 UNAV → (not_idempotent), over not_idempotent, = 2`,
		"S F ( ) F E-",
	},
	{
		"unsent hands its permit on", "retry", "grants=1",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 61 end 2 UNAV unsent → (retry), wake 161; 161 wake → send 3; 170 end 3 OK → over succeeded, = 3`,
		"S F ( Wf ) F ( ) + E+",
	},
	{
		"a pool has granted the attempt when the wait is over", "retry", "promised=kept",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2`,
		"S F ( Wf C+ ) + E+",
	},
	{
		"a pool has refused the attempt when the wait is over", "retry", "promised=broken",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → over budget_exhausted, = 1`,
		"S F ( Wf C- ) E-",
	},
	{
		"an attempt waits longer than its backoff for a pool that takes longer", "retry", "promised=kept answers=80",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 90; 90 wake → send 2; 100 end 2 OK → over succeeded, = 2`,
		"S F ( Wf C+ ) + E+",
	},
	{
		"a hedge waits for a pool", "hedge", "promised=kept answers=20",
		`0 start → send 1, wake 50; 50 wake → (hedge), wake 70; 70 wake → send 2, wake 120; 110 end 2 OK → won, cancel 1; 111 end 1 cut → cancelled, over succeeded, = 2`,
		"S Wh ( C+ ) + E+",
	},
	{
		"a deadline comes before a pool answers", "retry", "promised=kept answers=80 deadline=85",
		`0 start → send 1; 10 end 1 UNAV → (retry), over deadline_too_close, = 1`,
		"S F ( Wf ) R E-",
	},
	{
		"the caller goes before the pool has answered", "retry", "promised=broken",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 stop cancelled → over cancelled, = 0, last Unavailable`,
		"S F ( Wf ) R E-",
	},
	{
		"an attempt is given up only for one that a pool has granted", "inplace", "promised=broken deadline=1000",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake; 300 end 1 OK → over succeeded, = 1`,
		"S ( Wt C- ) E1",
	},
	{
		"unsent hands a permit on that was confirmed", "retry", "promised=kept",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 61 end 2 UNAV unsent → (retry), wake 161; 161 wake → send 3; 170 end 3 OK → over succeeded, = 3`,
		"S F ( Wf C+ ) F ( ) + E+",
	},
	{
		"no wait slot", "retry", "slots=0",
		`0 start → send 1; 10 end 1 UNAV → (too_many_waiting), over too_many_waiting, = 1`,
		"S F (! E-",
	},
	{
		"chain", "once", "inretry",
		`0 start → send 1; 10 end 1 UNAV → (chain_stop), over chain_stop, = 1`,
		"S F E-",
	},
	{
		"breaker refuses the first attempt", "retry", "breaker refuse",
		`0 start → over breaker_open, = 0`,
		"",
	},
	{
		"breaker refuses after the wait", "retry", "breaker",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set refuse; 60 wake → over breaker_open, = 1`,
		"S d:Unavailable F ( Wf ) R E-",
	},
	{
		"admission refuses the call", "retry", "admission queue deadline=1000 breaker",
		`0 start → over overloaded, = 0`,
		"",
	},
	{
		"admission, and the breaker refuses the call", "retry", "admission breaker refuse",
		`0 start → over breaker_open, = 0`,
		"< >",
	},
	{
		"admission, and the breaker panics", "retry", "admission breaker panics=Allow",
		`0 start → panic, abort: over panicked, = 0`,
		"< >",
	},
	{
		"admission, and the budget panics", "retry", "admission panics=S",
		`0 start → panic, abort: over panicked, = 0`,
		"< S > E-",
	},
	{
		"admission is asked about the time that is left", "retry", "admission queue deadline=2000",
		`0 start → send 1; 600 end 1 UNAV → (overloaded), over overloaded, = 1`,
		"< S > F E-",
	},
	{
		"admission without a deadline", "retry", "admission queue",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2`,
		"< S > F ( Wf < ) a:10 + E+",
	},
	{
		"admission: an extra attempt after a failure", "retry", "admission deadline=1000",
		`0 start → send 1; 5 set queue; 10 end 1 UNAV → (overloaded), over overloaded, = 1`,
		"< S > F E-",
	},
	{
		"admission: an extra attempt beside a slow one", "beside", "admission deadline=1000",
		`0 start → send 1, wake 200; 5 set queue; 200 wake → (overloaded); 900 end 1 OK → over succeeded, = 1`,
		"< S a:900 E1",
	},
	{
		"admission: the deadline passes", "beside", "admission deadline=1000",
		`0 start → send 1, wake 200; 5 set queue; 200 wake → (overloaded); 1000 stop deadline_exceeded; 1001 end 1 cut → over overloaded, = 1`,
		"< S > F E-",
	},
	{
		"admission: what is answered, what is refused and what is lost", "beside", "admission",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550; 550 wake → send 3; 600 end 2 NOT_FOUND → lost, (non_retryable), cancel 1 3; 601 end 1 EXHAUSTED → lost; 602 end 3 cut → cancelled, over non_retryable, = 2`,
		"< S ( Wt < ) ( Wt < ) a:350 - >f > - E-",
	},
	{
		"admission: what a server has not processed", "retry", "admission unsafe",
		`0 start → send 1; 10 end 1 UNAV refused → (retry), wake 60; 60 wake → send 2; 70 end 2 UNAV → (not_idempotent), over not_idempotent, = 2`,
		"< S >r F ( Wf < ) > - F E-",
	},
	{
		"not processed, with a code that nobody retries", "retry", "admission unsafe",
		`0 start → send 1; 10 end 1 NOT_FOUND refused → (non_retryable), over non_retryable, = 1`,
		"< S >r E-",
	},
	{
		"admission: what servers report", "retry", "admission",
		`0 start → send 1; 10 end 1 EXHAUSTED utilization=120 → (non_retryable), over non_retryable, = 1`,
		"< S u:1.2 >f E-",
	},
	{
		"admission: a deadline that is missed", "retry", "admission deadline=1000",
		`0 start → send 1; 1000 stop deadline_exceeded; 1000 end 1 DEADLINE → over deadline_exceeded, = 1`,
		"< S >d E-",
	},
	{
		"admission: a deadline that another attempt misses", "retry", "admission deadline=1000",
		`0 start → send 1; 500 end 1 UNAV → (retry), wake 550; 550 wake → send 2; 1000 stop deadline_exceeded; 1000 end 2 DEADLINE → over deadline_exceeded, = 2`,
		"< S > F ( Wf < ) > - E-",
	},
	{
		"admission: a server's own deadline", "retry", "admission deadline=1000",
		`0 start → send 1; 500 end 1 DEADLINE → (non_retryable), over non_retryable, = 1`,
		"< S > E-",
	},
	{
		"admission: a stream's first message", "retry", "admission",
		`0 start → send 1; 10 commit 1 message → true; 20 heard 1; 30 heard 1; 900 end 1 OK → over succeeded, = 1`,
		"< S a:20 E1",
	},
	{
		"admission: a stream's first message after it was committed", "retry", "admission",
		`0 start → send 1; 10 commit 1 context → true; 20 heard 1; 20 heard 2; 900 end 1 UNAV → (committed), over committed (context), = 1`,
		"< S a:20 F E-",
	},
	{
		"admission becomes known while the first attempt runs", "none", "unknown",
		`0 start → send 1; 10 adapt retry admission; 20 end 1 UNAV → (retry), wake 70; 70 wake → send 2; 80 end 2 OK → over succeeded, = 2`,
		"S < > F ( Wf < ) a:10 + E+",
	},
	{
		"admission: a policy without it becomes known", "none", "admission",
		`0 start → send 1; 10 adapt retry; 20 end 1 UNAV → (retry), wake 70; 70 wake → send 2; 80 end 2 OK → over succeeded, = 2`,
		"< S > F ( Wf < ) a:10 + E+",
	},
	{
		"closed for new attempts in the wait", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set off; 20 wake → over closed, = 1`,
		"S F ( Wf ) R E-",
	},
	{
		"closed for new attempts in the wait for a connection", "retry", "connect=3000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 51 set off; 51 wake → over closed, = 1`,
		"S F ( ) E-",
	},
	{
		"closed for new attempts before the first has failed", "retry", "",
		`0 start → send 1; 5 set off; 10 end 1 UNAV → (closed), over closed, = 1`,
		"S F E-",
	},
	{
		"closed for new attempts, and no other would follow anyway", "retry", "",
		`0 set off; 0 start → send 1; 10 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1`,
		"S E-",
	},
	{
		"mode OFF during the wait", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 set mode_off; 20 wake → over mode_off, = 1; 30 wake`,
		"S F ( Wf ) R E-",
	},
	{
		"mode OFF, and a server that is slow", "beside", "deadline=1000",
		`0 set mode_off; 0 start → send 1, wake 200; 200 wake → (mode_off); 1000 stop deadline_exceeded; 1000 end 1 cut → over mode_off, = 1`,
		"S F E-",
	},
	{
		"mode OBSERVE: a retry", "retry", "observe slots=0",
		`0 start → send 1; 10 end 1 UNAV → (retry shadow), over mode_off, = 1`,
		"S F Wf - E-",
	},
	{
		"mode OBSERVE: no answer beside the slow one", "beside", "observe slots=0",
		`0 start → send 1, wake 200; 200 wake → (hedge shadow); 400 end 1 OK → over succeeded, = 1`,
		"S Wt + E1",
	},
	{
		"mode OBSERVE: one shadow a call", "beside", "observe",
		`0 start → send 1, wake 200; 200 wake → (hedge shadow); 400 end 1 UNAV → (mode_off), over mode_off, = 1`,
		"S Wt F - E-",
	},
	{
		"mode OBSERVE: what fails for good says so", "hedge", "observe",
		`0 start → send 1, wake 50; 50 wake → (hedge shadow); 60 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1`,
		"S Wh - E-",
	},
	{
		"mode OBSERVE: the budget is empty", "beside", "observe grants=0",
		`0 start → send 1, wake 200; 200 wake → (budget_exhausted); 300 end 1 UNAV → (budget_exhausted), over budget_exhausted, = 1`,
		"S w F w E-",
	},
	{
		"mode OBSERVE: no attempt makes way", "inplace", "observe",
		`0 start → send 1, wake 200; 200 wake → (retry shadow); 250 wake; 900 end 1 OK → over succeeded, = 1`,
		"S Wt + E1",
	},
	{
		"mode OBSERVE: no stream is resumed", "retry", "observe",
		`0 start → send 1; 10 commit 1 message → true; 2000 end 1 UNAV resumes → (retry shadow), over mode_off, = 1`,
		"S F Wf - E-",
	},
	{
		"mode OBSERVE: the server's word", "retry", "observe",
		`0 start → send 1; 10 end 1 UNAV push=-1 → (pushback_stop), over pushback_stop, = 1`,
		"S F E-",
	},
	{
		"mode OBSERVE: a cancelled call", "hedge", "observe",
		`0 start → send 1, wake 50; 50 wake → (hedge shadow); 60 stop cancelled; 61 end 1 cut → over cancelled, = 1`,
		"S Wh - E-",
	},
	{
		"mode OBSERVE: a callback panics", "hedge", "observe",
		`0 start → send 1, wake 50; 50 wake → (hedge shadow); 60 abort → cancel 1, over panicked, = 0`,
		"S Wh - E-",
	},
	{
		"mode OBSERVE becomes OFF", "beside", "observe",
		`0 start → send 1, wake 200; 100 set mode_off; 200 wake → (mode_off); 400 end 1 OK → over succeeded, = 1`,
		"S E1",
	},
	{
		"closed for new attempts, and what runs is answered", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 set off; 100 wake → (closed); 110 end 2 UNAV → lost, (closed); 120 end 1 OK → won, over succeeded, = 1`,
		"S Wh - F E+",
	},
	{
		"closed for new attempts while one makes way", "inplace", "",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 set off; 251 end 1 cut → abandoned, over closed, = 1`,
		"S ( Wt F ) R E-",
	},
	{
		"closed for new attempts: no stream is resumed", "retry", "",
		`0 start → send 1; 10 commit 1 message → true; 20 set off; 2000 end 1 UNAV resumes → (closed), over closed, = 1`,
		"S F E-",
	},
	{
		"cancel in the wait", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 stop cancelled → over cancelled, = 0, last Unavailable; 60 wake`,
		"S F ( Wf ) R E-",
	},
	{
		"an answer at the deadline counts", "retry", "deadline=500",
		`0 start → send 1; 500 stop deadline_exceeded; 500 end 1 OK → over succeeded, = 1`,
		"S E1",
	},
	{
		"connection closed in the wait", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 stop closed → over closed, = 1`,
		"S F ( Wf ) R E-",
	},
	{
		"connection closed when the reply that meant not yet is gone", "inplace", "",
		`0 start → send 1, wake 200; 10 end 1 OK again → (retry), wake 60; 60 wake → send 2, wake 260; 260 wake → (retry), wake 360; 360 wake → cancel 2; 361 stop closed; 362 end 2 cut → cancelled, over closed, = 0`,
		"S ( Wf ) ( Wt ) R F - E-",
	},
	{
		"a code that costs twice", "costly", "",
		`0 start → send 1; 10 end 1 ABORTED → (retry), wake 60; 60 wake → send 2; 70 end 2 UNAV → (retry), wake 170; 170 wake → send 3; 180 end 3 OK → over succeeded, = 3`,
		"S F ( Wf*2 ) - F ( Wf ) + E+",
	},
	{
		"a reply that counts as a failure", "retry", "",
		`0 start → send 1; 10 end 1 OK as=UNAV → (retry), wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2`,
		"S ( Wf ) + E+",
	},
	{
		"not yet as the last word", "retry", "grants=0",
		`0 start → send 1; 10 end 1 OK again → (budget_exhausted), over budget_exhausted, = 1`,
		"S ( w ) E1",
	},
	{
		"waits for a connection", "retry", "connect=3000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 51 wake → wake 3001 or connected; 700 wake up → wake 2575; 2575 wake → send 2; 2585 end 2 OK → over succeeded, = 2`,
		"S F ( ) E+",
	},
	{
		"a short wait for a connection is followed by a short one", "retry", "connect=3000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 81 wake up → wake 581; 581 wake → send 2; 590 end 2 OK → over succeeded, = 2`,
		"S F ( ) E+",
	},
	{
		"the wait for a connection begins anew when a server was reached", "retry", "connect=1000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 1001 or connected; 500 wake up → wake 1125; 1125 wake → send 2; 1130 set down; 1140 end 2 UNAV → (retry), wake 2140 or connected; 2140 wake → over not_connected, = 2`,
		"S F ( ) F ( Wf ) R E-",
	},
	{
		"a connection is waited for as long as an attempt is of use", "retry", "connect=3000 deadline=1000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 999 or connected; 999 wake → over not_connected, = 1`,
		"S F ( ) E-",
	},
	{
		"connected shortly before the deadline: half of what is left is for the attempt", "retry", "connect=3000 deadline=1000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 999 or connected; 967 wake up → wake 977; 977 wake → send 2; 999 end 2 OK → over succeeded, = 2`,
		"S F ( ) E+",
	},
	{
		"no wait slot for the wait for a connection", "hedge", "connect=1000 slots=0",
		`0 start → send 1, wake 50; 10 set down; 50 wake → (hedge); 60 end 1 OK → over succeeded, = 1`,
		"S Wh (! R E1",
	},
	{
		"a hedge waits for a connection while others run", "hedge2", "connect=3000",
		`0 start → send 1, wake 50; 0 set down; 50 wake → (hedge), wake 100; 100 wake → wake 150; 130 wake up → wake 630; 630 wake → send 2; 640 end 2 OK → won, cancel 1; 641 end 1 cut → cancelled, over succeeded, = 2`,
		"S Wh ( ) + E+",
	},
	{
		"never connected", "retry", "connect=3000",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), wake 3001 or connected; 3001 wake → over not_connected, = 1`,
		"S F ( ) E-",
	},
	{
		"in an outage of 8 s, a connection is waited for until that is 9 s old", "retry", "connect=3000 outage=9000",
		`0 start → send 1; 0 set down 8000; 1 end 1 UNAV unsent → (retry), wake 1000 or connected; 1000 wake → over not_connected, = 1`,
		"S F ( ) E-",
	},
	{
		"in an outage of 9 s, no connection is waited for", "retry", "connect=3000 outage=9000",
		`0 start → send 1; 0 set down 8999; 1 end 1 UNAV unsent → (retry), over not_connected, = 1`,
		"S F ( ) E-",
	},
	{
		"connected before the outage is that old", "retry", "connect=3000 outage=9000",
		`0 start → send 1; 0 set down 8000; 1 end 1 UNAV unsent → (retry), wake 1000 or connected; 81 wake up → wake 581; 581 wake → send 2; 590 end 2 OK → over succeeded, = 2`,
		"S F ( ) E+",
	},
	{
		"the caller wants no wait for a connection", "retry", "failfast=1",
		`0 start → send 1; 0 set down; 1 end 1 UNAV unsent → (retry), over not_connected, = 1`,
		"S F ( ) E-",
	},
	{
		"nor that, and the channel is up", "retry", "failfast=1",
		`0 start → send 1; 1 end 1 UNAV → (retry), wake 51; 51 wake → send 2; 60 end 2 OK → over succeeded, = 2`,
		"S F ( Wf ) + E+",
	},
	{
		"a loser's end does not forget that a connection is waited for", "hedge", "connect=1000",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 commit 1 message → true, cancel 2; 60 set down; 70 end 1 UNAV resumes → lost, (hedge), wake 1070 or connected; 80 end 2 cut → cancelled, wake 1070 or connected; 1070 wake → over not_connected, = 1`,
		"S Wh F ( Wf - ) R E-",
	},
	{
		"timeout, beside", "beside", "",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 260 end 2 OK → won, cancel 1; 261 end 1 cut → cancelled, over succeeded, = 2`,
		"S ( Wt ) + F E+",
	},
	{
		"timeout, budget empty: the attempt goes on", "beside", "grants=0 deadline=1000",
		`0 start → send 1, wake 200; 200 wake → (budget_exhausted); 1000 stop deadline_exceeded; 1000 end 1 cut → over budget_exhausted, = 1`,
		"S ( w ) F E-",
	},
	{
		"attempts that hang until the caller is gone count as failures", "beside", "breaker",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 300 stop cancelled; 300 end 1 cut → cancelled; 300 end 2 cut → cancelled, over cancelled, = 2`,
		"S ( Wt ) F d:DeadlineExceeded - d:Canceled E-",
	},
	{
		"timeout, the breaker opens in the wait: the attempt goes on", "beside", "breaker deadline=1000",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 210 set refuse; 250 wake; 1000 stop deadline_exceeded; 1000 end 1 cut → over breaker_open, = 1`,
		"S ( Wt ) R F d:DeadlineExceeded E-",
	},
	{
		"in place, the breaker opens in the wait: the attempt goes on", "inplace", "breaker deadline=1000",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 210 set refuse; 250 wake; 300 end 1 OK → over succeeded, = 1`,
		"S ( Wt ) R d:OK E1",
	},
	{
		"timeout, in place", "inplace", "",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut → abandoned, send 2, wake 451; 260 end 2 OK → over succeeded, = 2`,
		"S ( Wt F ) + E+",
	},
	{
		"in place, the answer comes while it is cancelled", "inplace", "",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 250 end 1 OK → over succeeded, = 1`,
		"S ( Wt ) R E1",
	},
	{
		"last attempt has no timeout", "inplace", "deadline=5000",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 250 end 1 cut → abandoned, send 2, wake 450; 450 wake → (retry), wake 550; 550 wake → cancel 2; 550 end 2 cut → abandoned, send 3; 5000 stop deadline_exceeded; 5000 end 3 cut → over deadline_exceeded, = 3`,
		"S ( Wt F ) ( Wt F - ) - E-",
	},
	{
		"hedging", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 100 wake → (hedge), send 3; 120 end 2 OK → won, cancel 1 3; 121 end 1 cut → cancelled; 122 end 3 UNAV → lost, over succeeded, = 2`,
		"S Wh Wh + - E+",
	},
	{
		"hedging by the quantile", "quantile", "quantile=20",
		`0 start → send 1, wake 20; 20 wake → (hedge), send 2, wake 40; 30 end 1 OK → won, cancel 2; 31 end 2 cut → cancelled, over succeeded, = 1`,
		"S Wh - E+",
	},
	{
		"hedging, fatal", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 NOT_FOUND → lost, (non_retryable), cancel 2; 61 end 2 cut → cancelled, over non_retryable, = 1`,
		"S Wh - E-",
	},
	{
		"hedging, what a loser says after a fatal answer is nobody's business", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 NOT_FOUND → lost, (non_retryable), cancel 2; 60 end 2 UNAV → lost, over non_retryable, = 1`,
		"S Wh - E-",
	},
	{
		"hedging, pushback delays the next, whoever fails then", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 UNAV push=300 → lost, (hedge), wake 375; 70 end 2 UNAV → lost, (hedge), wake 375; 360 wake → wake 375; 375 wake → send 3; 380 end 3 OK → over succeeded, = 3`,
		"S Wh F ( Wf - ) R F Wf ( ) + E+",
	},
	{
		"a loser that was not sent costs nothing", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 OK → won, cancel 2; 61 end 2 UNAV unsent → lost, over succeeded, = 1`,
		"S Wh R E+",
	},
	{
		"hedge brings not yet as the last word", "hedge", "grants=1",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 1 UNAV → lost, (budget_exhausted), wake 100; 70 end 2 OK again → lost, (budget_exhausted), over budget_exhausted, = 2`,
		"S Wh F w - w E+",
	},
	{
		"hedge panics", "hedge", "breaker",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 2 panic → lost, cancel 1; 61 end 1 cut → cancelled, over panicked, = 2`,
		"S Wh - d:Unknown d:OK E-",
	},
	{
		"stream: hedges, the first message wins", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 commit 2 message → true, cancel 1; 61 commit 1 message → false; 62 end 1 cut → cancelled; 900 end 2 OK → won, over succeeded, = 2`,
		"S Wh + E+",
	},
	{
		"stream: in place, the message comes too late", "inplace", "",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 250 commit 1 message → false; 250 heard 1; 251 end 1 cut → abandoned, send 2, wake 451; 260 commit 2 message → true; 260 heard 2; 900 end 2 OK → over succeeded, = 2`,
		"S ( Wt F ) + E+",
	},
	{
		"stream: committed before the first message, which came in time", "beside", "admission",
		`0 start → send 1, wake 200; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2, wake 260; 70 commit 2 context → true; 160 heard 2; 20000 end 2 OK → over succeeded, = 2`,
		"< S > F ( Wf < ) a:100 + E+",
	},
	{
		"stream: committed before the first message, which came too late", "beside", "",
		`0 start → send 1, wake 200; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2, wake 260; 70 commit 2 headers → true; 270 heard 2; 20000 end 2 OK → over succeeded, = 2`,
		"S F ( Wf ) - E+",
	},
	{
		"stream: an attempt whose first message has come is not slow", "beside", "",
		`0 start → send 1, wake 200; 190 heard 1; 200 wake; 300 commit 1 message → true; 900 end 1 OK → over succeeded, = 1`,
		"S E1",
	},
	{
		"stream: an attempt is slow when it was waited for so long", "beside", "",
		`0 start → send 1, wake 200; 120 paused 100 → wake 300; 200 wake → wake 300; 300 wake → (hedge), wake 350; 340 paused 40 → wake 350; 350 wake → send 2, wake 550; 500 paused 500 → wake 700; 510 end 2 OK → won, cancel 1; 511 end 1 cut → cancelled, over succeeded, = 2`,
		"S ( Wt ) + F E+",
	},
	{
		"stream: an attempt that was waited for too late to be slow before the deadline", "hedge", "deadline=1000",
		`0 start → send 1, wake 50; 949 paused 949 → wake 999; 950 paused 1; 990 end 1 OK → over succeeded, = 1`,
		"S E1",
	},
	{
		"stream: time always counts while nothing runs", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 50 paused 50 → wake 60; 60 wake → send 2; 70 end 2 OK → over succeeded, = 2`,
		"S F ( Wf ) + E+",
	},
	{
		"stream: an attempt that was left alone for an eighth of its time is a measure", "retry", "admission",
		`0 start → send 1; 70 paused 10; 80 heard 1; 90 paused 10; 900 end 1 OK → over succeeded, = 1`,
		"< S a:70 E1",
	},
	{
		"stream: an attempt that was left alone for longer is none", "retry", "admission",
		`0 start → send 1; 70 paused 11; 80 heard 1; 900 end 1 OK → over succeeded, = 1`,
		"< S >a E1",
	},
	{
		"alone: a slow attempt makes way", "beside", "alone",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut → abandoned, send 2, wake 451; 260 end 2 OK → over succeeded, = 2`,
		"S ( Wt F ) + E+",
	},
	{
		"alone: a slow attempt goes on if no other may follow", "beside", "alone grants=0",
		`0 start → send 1, wake 200; 200 wake → (budget_exhausted); 900 end 1 OK → over succeeded, = 1`,
		"S ( w ) E1",
	},
	{
		"alone: a hedging policy sends the next attempt after a failure", "hedge", "alone",
		`0 start → send 1; 60 end 1 UNAV → (retry), send 2; 70 end 2 UNAV → (retry), send 3; 900 end 3 OK → over succeeded, = 3`,
		"S F Wf - F Wf + E+",
	},
	{
		"alone: a hedging policy, fatal", "hedge", "alone",
		`0 start → send 1; 60 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1`,
		"S E-",
	},
	{
		"stream: buffer full", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 65 commit 2 buffer_full → true; 70 end 2 UNAV → (committed), over committed (buffer_full), = 2`,
		"S F ( Wf ) - F E-",
	},
	{
		"headers commit by the policy", "headers", "",
		`0 start → send 1; 10 end 1 UNAV headers → (committed), over committed (headers), = 1`,
		"S F E-",
	},
	{
		"resumption", "retry", "",
		`0 start → send 1; 10 commit 1 message → true; 2000 end 1 UNAV resumes progress → (retry), wake 2050; 2050 wake → send 2; 2060 commit 2 message → true; 2100 end 2 UNAV resumes progress → (retry), wake 2200; 2200 wake → send 3; 2210 end 3 UNAV resumes → (retry), wake 2410; 2410 wake → send 4; 2420 end 4 UNAV resumes → (attempts_exhausted), over attempts_exhausted, = 4`,
		"S F ( Wf ) - F ( Wf ) - F ( Wf ) - F E-",
	},
	{
		"a resumption begins its backoff anew if the stream ran longer than the longest", "retry", "",
		`0 start → send 1; 10 commit 1 message → true; 2000 end 1 UNAV resumes progress → (retry), wake 2050; 2050 wake → send 2; 2060 commit 2 message → true; 12050 end 2 UNAV resumes progress → (retry), wake 12150; 12150 wake → send 3; 12160 commit 3 message → true; 22151 end 3 UNAV resumes progress → (retry), wake 22201; 22201 wake → send 4; 22210 end 4 OK → over succeeded, = 4`,
		"S F ( Wf ) - F ( Wf ) - F ( Wf ) + E+",
	},
	{
		"headers are no progress of a stream that is resumed", "retry", "",
		`0 start → send 1; 10 commit 1 headers → true; 20 end 1 UNAV resumes → (retry), wake 70; 70 wake → send 2; 80 commit 2 headers → true; 90 end 2 UNAV resumes → (retry), wake 190; 190 wake → send 3; 200 commit 3 headers → true; 210 end 3 UNAV resumes → (attempts_exhausted), over attempts_exhausted, = 3`,
		"S F ( Wf ) - F ( Wf ) - F E-",
	},
	{
		"a message after the headers is progress", "retry", "",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → send 2; 70 commit 2 headers → true; 90 end 2 UNAV resumes progress → (retry), wake 190; 190 wake → send 3; 200 end 3 UNAV resumes → (retry), wake 400; 400 wake → send 4; 410 end 4 OK → over succeeded, = 4`,
		"S F ( Wf ) - F ( Wf ) - F ( Wf ) + E+",
	},
	{
		"a policy that comes late", "none", "",
		`0 start → send 1; 50 adapt beside → wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 260 end 1 UNAV → lost, (followed), wake 450; 270 end 2 OK → won, over succeeded, = 2`,
		"S ( Wt ) F + E+",
	},
	{
		"a policy that comes late, to an attempt that was not waited for", "none", "",
		`0 start → send 1; 50 paused 50; 50 adapt beside → wake 250; 250 wake → (hedge), wake 300; 260 end 1 OK → over succeeded, = 1`,
		"S ( Wt ) R E1",
	},
	{
		"a policy that comes too late", "none", "breaker",
		`0 start → send 1; 50 adapt retry; 60 end 1 NOT_FOUND → (non_retryable), over non_retryable, = 1; 70 adapt retry`,
		"S d:NotFound E-",
	},
	{
		"an interceptor panics for an attempt that has ended", "hedge", "breaker",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 100 wake → (hedge), send 3; 110 end 2 UNAV → lost, (attempts_exhausted); 120 panicked → cancel 1 3; 121 end 1 cut → cancelled; 122 end 3 OK → lost, over panicked, = 0, last Unavailable; 123 panicked`,
		"S Wh Wh - d:Unavailable F d:OK - d:OK E-",
	},
	{
		"an interceptor panics while the next attempt is waited for", "retry", "breaker",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 panicked → over panicked, = 0, last Unavailable; 60 wake`,
		"S d:Unavailable F ( Wf ) R E-",
	},
	{
		"a breaker panics at an attempt's end", "hedge", "breaker panics=d:Unavailable",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 2 UNAV → panic, abort: cancel 1, over panicked, = 0; 70 end 1 OK`,
		"S Wh - d:Unavailable d:Unknown E-",
	},
	{
		"a breaker panics before the first attempt", "retry", "breaker panics=Allow",
		`0 start → panic, abort: over panicked, = 0; 10 wake`,
		"",
	},
	{
		"a budget panics before the first attempt", "retry", "breaker panics=S",
		`0 start → panic, abort: over panicked, = 0`,
		"S d:Unknown E-",
	},
	{
		"a latency panics before the first attempt", "quantile", "breaker panics=Usual",
		`0 start → panic, abort: over panicked, = 0`,
		"S d:Unknown E-",
	},
	{
		"a wait limit panics when the next attempt is sent", "retry", "breaker panics=)",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 60 wake → panic, abort: over panicked, = 0`,
		"S d:Unavailable F ( Wf ) - d:Unknown E-",
	},
	{
		"a latency panics at an answer", "hedge", "breaker panics=Record",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 60 end 2 OK → panic, abort: cancel 1, over panicked, = 0`,
		"S Wh - d:Unknown d:Unknown E-",
	},
	{
		"a budget panics at an abandoned attempt", "inplace", "breaker panics=F",
		`0 start → send 1, wake 200; 200 wake → (retry), wake 250; 250 wake → cancel 1; 251 end 1 cut → panic, abort: over panicked, = 0`,
		"S ( Wt F ) R d:Unknown E-",
	},
	{
		"an observer panics, and a wait limit then", "retry", "panics=)",
		`0 start → send 1; 10 end 1 UNAV → (retry), wake 60; 20 abort → over panicked, = 0`,
		"S F ( Wf ) R E-",
	},
	{
		"stream: a message after the caller has gone makes its attempt the answer, not one that fails beside it", "hedge", "",
		`0 start → send 1, wake 50; 50 wake → (hedge), send 2, wake 100; 100 wake → (hedge), send 3; 105 stop cancelled; 105 end 3 NOT_FOUND → lost; 105 commit 1 message → true, cancel 2; 106 end 2 UNAV → lost; 107 end 1 cut → cancelled, over cancelled, = 1, last Unavailable`,
		"S Wh Wh - - E-",
	},
	{
		"followed, with a stop: the pending attempt is given up", "beside", "",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550; 460 end 1 UNAV push=-1 → lost, (pushback_stop); 550 wake; 560 end 2 OK → won, over succeeded, = 2`,
		"S ( Wt ) ( Wt F ) R - E+",
	},
	{
		"followed, with a pushback beyond the deadline: the pending attempt is given up", "beside", "deadline=900",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550; 460 end 1 UNAV push=500 → lost, (followed); 550 wake; 560 end 2 OK → won, over succeeded, = 2`,
		"S ( Wt ) ( Wt F ) R - E+",
	},
	{
		"followed, with a pushback that ends when an attempt is just of use", "beside", "deadline=986",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550; 460 end 1 UNAV push=500 → lost, (followed), wake 985; 985 wake → send 3; 985 end 3 OK → won, cancel 2; 985 end 2 cut → cancelled, over succeeded, = 3`,
		"S ( Wt ) ( Wt F ) + F - E+",
	},
	{
		"followed, with a pushback: the pending attempt waits for it", "beside", "",
		`0 start → send 1, wake 200; 200 wake → (hedge), wake 250; 250 wake → send 2, wake 450; 450 wake → (hedge), wake 550; 460 end 1 UNAV push=500 → lost, (followed), wake 985; 550 wake → wake 985; 985 wake → send 3; 990 end 3 OK → won, cancel 2; 991 end 2 cut → cancelled, over succeeded, = 3`,
		"S ( Wt ) ( Wt F ) + F - E+",
	},
}

func TestTraces(t *testing.T) {
	t.Parallel()
	list := policies(t)
	for _, tt := range traces {
		for name, origin := range map[string]time.Duration{"": 0, "_before_zero": -30 * 365 * 24 * time.Hour} {
			t.Run(strings.ReplaceAll(tt.name, " ", "_")+name, func(t *testing.T) {
				t.Parallel()
				p := newPlay(list[tt.policy], tt.options, origin)
				p.policies = list
				p.run(tt.trace)
				want := strings.Split(tt.trace, ";")
				for i, got := range p.steps {
					if want := strings.TrimSpace(want[i]); got != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
				}
				if got := strings.Join(p.told, " "); got != tt.told {
					t.Errorf("told %s\nwant %s", got, tt.told)
				}
				if left := p.left(); p.call.Over() && left != nil {
					t.Error("not given back:", left)
				}
			})
		}
	}
}

func TestHedge(t *testing.T) {
	t.Parallel()
	p := newPlay(policies(t)["beside"], "", 0)
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

// An attempt that was answered in time returns its permit, whatever happened later. Its answer is its first message, even if
// something else has committed the call to it.
func TestHeardIsAnswer(t *testing.T) {
	t.Parallel()
	for _, why := range []decision.Commit{decision.CommitMessage, decision.CommitHeaders, decision.CommitContext, decision.CommitBufferFull} {
		for events, want := range map[string]string{"": "-", "; 80 heard 2": "+", "; 261 heard 2": "-"} {
			p := newPlay(policies(t)["beside"], "", 0)
			p.run("0 start; 10 end 1 UNAV; 60 wake; 70 commit 2 " + string(why) + events + "; 900 end 2 OK")
			if got := p.told[len(p.told)-2]; got != want {
				t.Errorf("committed by %s%s: the permit is settled with %s; want %s", why, events, got, want)
			}
		}
	}
}

func TestEndGaveUp(t *testing.T) {
	t.Parallel()
	want := map[policy.Reason][2]bool{ // after one attempt, and after two
		policy.ReasonAttemptsExhausted: {false, true}, policy.ReasonDeadlineExceeded: {false, true},
	}
	for _, reason := range []policy.Reason{
		policy.ReasonPushbackStop, policy.ReasonBreakerOpen, policy.ReasonLatencyUnknown, policy.ReasonSlowEverywhere, policy.ReasonOverloaded,
		policy.ReasonDeadlineTooClose, policy.ReasonTooManyWaiting, policy.ReasonBudgetExhausted, policy.ReasonNotConnected,
	} {
		want[reason] = [2]bool{true, true}
	}
	for _, reason := range decision.Reasons() {
		got := [2]bool{(&End{Reason: reason, Attempts: 1}).GaveUp(), (&End{Reason: reason, Attempts: 2}).GaveUp()}
		if got != want[reason] {
			t.Errorf("%s: after one attempt and two %v; want %v", reason, got, want[reason])
		}
	}
}
