// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// listing is a server stream of numbers, which is cut again and again, and resumes where it was.
type listing struct {
	form    int
	numbers int
	most    int   // attempts without progress
	sends   []int // the count of numbers that each attempt sends before it fails; later ones send all
	ends    []string
	header  []bool // an attempt sends headers at once
	slow    time.Duration
	refuses int // number of the resumption that the application refuses, from 1; 0: none
	cancel  time.Duration
	beside  bool // attempts may run in parallel
}

func (l *listing) String() string {
	return fmt.Sprintf("%d numbers of %s, %d attempts, which send %v and end %v (headers %v), slow %v, refuses %d, cancel %v, beside %v",
		l.numbers, forms[l.form].name, l.most, l.sends, l.ends, l.header, l.slow, l.refuses, l.cancel, l.beside)
}

func drawListing(d *draws) *listing {
	l := &listing{
		form: d.below(2), numbers: d.below(20), most: 2 + d.below(3), slow: one(d, 0, ms, 40*ms), beside: d.odds(30),
	}
	for range d.below(12) {
		l.sends = append(l.sends, d.below(4))
		l.ends = append(l.ends, one(d, "fail", "drop", "cut"))
		l.header = append(l.header, d.odds(30))
	}
	if d.odds(15) {
		l.refuses = 1 + d.below(3)
	}
	if d.odds(15) {
		l.cancel = one(d, 10*ms, 100*ms, 300*ms) + 317*time.Microsecond
	}
	return l
}

// expected returns what the application receives, and what each attempt is asked for.
func (l *listing) expected() (numbers int, asked []string, whole bool) {
	attempts, resumed := 1, 0
	for i := 0; ; i++ {
		asked = append(asked, strconv.Itoa(numbers))
		if i >= len(l.sends) {
			return l.numbers, asked, true
		}
		brings := min(l.sends[i], l.numbers-numbers)
		if brings > 0 {
			numbers, attempts = numbers+brings, 1
			if resumed++; resumed == l.refuses {
				return numbers, asked, false
			}
		}
		if attempts++; attempts > l.most {
			return numbers, asked, false
		}
	}
}

// serve returns how an attempt is served.
func (l *listing) serve(_ context.Context, a testserver.Attempt) testserver.Step {
	from, err := strconv.Atoi(decoded(a.Requests[0]))
	if err != nil {
		return testserver.Fail(codes.Internal, "asked for "+decoded(a.Requests[0]))
	}
	i := a.Number - 1
	until := l.numbers
	if i < len(l.sends) {
		until = min(l.numbers, from+l.sends[i])
	}
	var list []moves.Move
	if i < len(l.header) && l.header[i] {
		list = append(list, moves.SendHeader(nil))
	}
	for n := from; n < until; n++ {
		list = append(list, moves.Pause(3*ms), moves.SendRaw(encoded(strconv.Itoa(n))))
	}
	list = append(list, moves.Pause(3*ms))
	if i >= len(l.sends) {
		return moves.Play(list...)
	}
	switch l.ends[i] {
	case "drop":
		return moves.Play(list...).Then(testserver.Drop())
	case "cut":
		return moves.Play(append(list, moves.Cut())...)
	default:
		return moves.Play(list...).Then(testserver.Fail(codes.Unavailable))
	}
}

// next returns the option that requests the numbers after the last one.
func (l *listing) next() grpc.CallOption {
	resumed := 0
	return interceptor.Resume(func(last proto.Message) (proto.Message, bool) {
		n, err := strconv.Atoi(forms[l.form].text(last))
		resumed++
		return forms[l.form].make(strconv.Itoa(n + 1)).(proto.Message), err == nil && resumed != l.refuses
	})
}

func (l *listing) spec() policy.Spec {
	retry := &policy.RetrySpec{
		MaxAttempts: l.most, Codes: []codes.Code{codes.Unavailable}, Budget: policy.NoBudget,
		Backoff: policy.Backoff{Initial: 20 * ms, Max: 20 * ms, Multiplier: 1, Jitter: policy.JitterNone},
	}
	if l.beside {
		retry.PerAttemptTimeout = time.Hour
	}
	return policy.Spec{Retry: retry}
}

func (l *listing) play(t *testing.T) (found string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t)
		server.On("*", moves.Play(moves.Receive(1)).Then(testserver.Func(l.serve)))
		e := new(ends)
		r, err := interceptor.New(new(storm).set(t, l.spec()), e.observer())
		if err != nil {
			t.Fatal(err)
		}
		conn := server.Dial(t, append(r.DialOptions(), soon)...)
		var finished []error
		got, took, end := l.receive(conn, &finished)
		_ = conn.Close()
		synctest.Wait()
		var asked []string
		for _, a := range server.Attempts() {
			for _, data := range a.Requests {
				asked = append(asked, decoded(data))
			}
		}
		found = l.judge(got, asked, finished, end, took) + e.fault(r)
	})
	return found
}

// receive receives the numbers.
func (l *listing) receive(conn *grpc.ClientConn, finished *[]error) (got []string, took time.Duration, end error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if l.cancel > 0 {
		defer time.AfterFunc(l.cancel, cancel).Stop()
	}
	start := time.Now()
	form := forms[l.form]
	stream, end := conn.NewStream(ctx, serverStream.desc(), method, l.next(), grpc.OnFinish(func(err error) { *finished = append(*finished, err) }))
	if end == nil {
		_ = stream.SendMsg(form.make("0"))
		_ = stream.CloseSend()
	}
	for end == nil {
		m := form.empty()
		if end = stream.RecvMsg(m); end == nil {
			got = append(got, form.text(m))
			time.Sleep(l.slow)
		}
	}
	return got, time.Since(start), end
}

// judge compares the result with the expected one.
func (l *listing) judge(got, asked []string, finished []error, end error, took time.Duration) string {
	numbers, wantAsked, whole := l.expected()
	for i, text := range got {
		if text != strconv.Itoa(i) {
			return fmt.Sprintf("received %v", got)
		}
	}
	told := fmt.Sprintf("received %d numbers (%v) after requests for %v; want %d, whole %v, after %v\n", len(got), end, asked, numbers, whole, wantAsked)
	last := end
	if last == io.EOF {
		last = nil
	}
	switch {
	case len(finished) != 1 || status.Code(finished[0]) != status.Code(last) && (l.cancel == 0 || status.Code(finished[0]) != codes.Canceled):
		return fmt.Sprintf("OnFinish was told %v, %s", finished, told)
	case l.cancel > 0 && took >= l.cancel: // it may have been
		if len(got) > numbers || end == io.EOF && len(got) != l.numbers || len(asked) > len(wantAsked) || took > l.cancel+time.Second {
			return told
		}
		return ""
	case len(got) != numbers || (end == io.EOF) != whole || !slices.Equal(asked, wantAsked):
		return told
	}
	return ""
}

func playListing(t *testing.T, d *draws) string {
	t.Helper()
	l := drawListing(d)
	return described(l, func() string { return l.play(t) })
}

func TestResume(t *testing.T) { search(t, 100, 50, playListing) }

func FuzzResume(f *testing.F) { fuzz(f, 50, playListing) }
