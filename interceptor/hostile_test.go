// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// Law 7, and its limits: pushback always wins, and no answer of a server makes a client
// panic, wait for longer than the policy allows, or send more.
func TestHostile_Word(t *testing.T) {
	t.Parallel()
	hedges := hedged(func(h *policy.HedgeSpec) { h.MaxAttempts, h.Delay = 4, time.Hour })
	for name, row := range map[string]struct {
		config policy.Config
		stream bool
	}{
		"unary":                 {config(plain()), false},
		"unary that may race":   {config(besides()), false},
		"hedged":                {hedges, false},
		"stream":                {config(plain()), true},
		"stream with a timeout": {config(hasty()), true},
	} {
		for _, h := range slices.Concat(pushbacks(), retryAfters(), retryInfos(), floods()) {
			if name == "hedged" && h.elapsed == unsaid {
				h.elapsed = 0 // the next hedge follows a failure at once
			}
			t.Run(name+", "+h.name, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) { h.check(t, s, row.stream) })
			})
		}
	}
}

// check makes a call to the hostile server, and then one to see that the client is well.
func (h hostility) check(t *testing.T, s scene, stream bool) {
	t.Helper()
	call := func() error {
		if stream {
			return ask(t.Context(), s.conn, false)
		}
		_, err := s.call(t.Context(), get)
		return err
	}
	start := time.Now()
	s.On(get, h.step)
	if err := call(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %.200v; want the server's", err)
	}
	if n, took := s.Count(get), time.Since(start); n != h.attempts || took != h.elapsed {
		t.Errorf("%d attempts in %v; want %d in %v", n, took, h.attempts, h.elapsed)
	}
	s.On(get, text("well"))
	if err := call(); err != nil || s.retrier.State().Waiting != 0 || s.retrier.Replayed() != 0 {
		t.Errorf("the next call ends with %v, %d calls wait, %d bytes are kept", err, s.retrier.State().Waiting, s.retrier.Replayed())
	}
}

// openGates let every attempt through.
type openGates struct{}

func (openGates) Off() policy.Reason                      { return "" }
func (openGates) Open() bool                              { return false }
func (openGates) LatencyUnknown() bool                    { return false }
func (openGates) SlowEverywhere(decision.Outcome) bool    { return false }
func (openGates) Overloaded() bool                        { return false }
func (openGates) TakeSlot() bool                          { return true }
func (openGates) ReleaseSlot()                            {}
func (openGates) Fail()                                   {}
func (openGates) Withdraw(decision.Outcome, float64) bool { return true }

// FuzzServersWord tests the decision with all pushback that a server may send.
func FuzzServersWord(f *testing.F) {
	f.Add("5", "", "120", retryInfoURL, []byte("\x0a\x02\x08\x05"), 0.5)
	f.Add("-1", "7", "Fri, 31 Dec 9999 23:59:59 GMT", "", []byte{}, 0.0)
	f.Add("", "", "99999999999999999999", retryInfoURL, []byte("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 0.999)
	p := decision.New(mustPolicy(f, policy.Spec{Retry: new(plain())}).Spec())
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, pushback, second, after, url string, detail []byte, r float64) {
		if !(r >= 0 && r < 1) {
			t.Skip("no chance")
		}
		trailer := metadata.Pairs(decision.RetryAfter, after)
		for _, value := range []string{pushback, second} {
			if value != "" {
				trailer.Append(decision.PushbackTrailer, value)
			}
		}
		st := status.FromProto(&spb.Status{Code: int32(codes.Unavailable), Details: []*anypb.Any{{TypeUrl: url, Value: detail}, nil}})
		push := decision.ReadPushback(st, nil, trailer, now)
		if push.Delay < 0 || (push.Stop || push.Delay > 0) && push.Source == "" || push.Stop && push.Delay != 0 {
			t.Errorf("ReadPushback = %+v", push)
		}
		d := p.Decide(&decision.Call{Attempts: 1, Safe: true}, p.Classify(&decision.Outcome{Status: st, Trailer: trailer}, now), openGates{}, now, r)
		switch {
		case d.Retry && push.Source == "" && d.Delay != 100*ms,
			d.Retry && push.Source != "" && (d.Delay < push.Delay || d.Delay-push.Delay > push.Delay/10 || push.Delay > defaults.MaxPushback),
			d.Retry == (push.Stop || push.Delay > defaults.MaxPushback),
			!d.Retry && d.Reason != policy.ReasonPushbackStop:
			t.Errorf("%+v after %+v", d, push)
		}
	})
}

// hostility is a server's answer to every attempt, with the required result.
type hostility struct {
	name     string
	step     testserver.Step
	attempts int
	elapsed  time.Duration
}

const (
	unsaid  = 700 * ms // of backoffs, when the pushback is ignored
	longest = 3 * defaults.MaxPushback
)

// pushbacks are hostile values of grpc-retry-pushback-ms: invalid ones mean stop.
func pushbacks() (list []hostility) {
	for name, values := range map[string][]string{
		"one above the most":         {"300001"},
		"the largest":                {"2147483647"},
		"above 32 bits":              {"2147483648"},
		"above 64 bits":              {"99999999999999999999"},
		"nanoseconds that overflow":  {"9223372036855"},
		"negative":                   {"-1"},
		"the least":                  {"-9223372036854775808"},
		"below 64 bits":              {"-9223372036854775809"},
		"empty":                      {""},
		"a fraction":                 {"0.5"},
		"an exponent":                {"1e3"},
		"hexadecimal":                {"0x1"},
		"not a number":               {"NaN"},
		"infinite":                   {"Infinity"},
		"with a unit":                {"5ms"},
		"with a comma":               {"5,5"},
		"64 KiB of digits":           {strings.Repeat("1", 64<<10)},
		"64 KiB of zeros":            {strings.Repeat("0", 64<<10)},
		"twice":                      {"5", "5"},
		"a thousand times":           strings.Split(strings.Repeat("5 ", 1000)+"5", " "),
		"a good one, then a bad one": {"5", "-1"},
	} {
		list = append(list, hostility{"pushback " + name, down().Pushback(values...), 1, 0})
	}
	return append(list,
		hostility{"pushback the most", down().Pushback("300000"), 4, longest},
		hostility{"pushback zero", down().Pushback("0"), 4, 0})
}

// retryAfters are hostile values of retry-after: invalid ones are ignored.
func retryAfters() (list []hostility) {
	for _, value := range []string{
		"", "-1", "+1", "1.5", "1e9", "NaN", "0x10", "soon", "Sun, 99 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 99999 12:00:30 GMT",
		strings.Repeat("A", 64<<10),
	} {
		list = append(list, hostility{fmt.Sprintf("retry-after %.20q", value), down().Trailer(metadata.Pairs("retry-after", value)), 4, unsaid})
	}
	for _, value := range []string{"301", "9223372036", "9223372037", "99999999999999999999", strings.Repeat("9", 64<<10), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		list = append(list, hostility{fmt.Sprintf("retry-after %.40q is too long", value), down().Trailer(metadata.Pairs("retry-after", value)), 1, 0})
	}
	return append(list,
		hostility{"retry-after a date long past", down().Trailer(metadata.Pairs("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")), 4, 0},
		hostility{"retry-after twice", down().Trailer(metadata.Pairs("retry-after", "5")).Trailer(metadata.Pairs("retry-after", "7")), 4, unsaid},
		hostility{"retry-after the most", down().Trailer(metadata.Pairs("retry-after", "300")), 4, longest})
}

const retryInfoURL = "type.googleapis.com/google.rpc.RetryInfo"

// details is UNAVAILABLE with details of a type and with these bytes.
func details(url string, values ...string) testserver.Step {
	p := &spb.Status{Code: int32(codes.Unavailable), Message: "hostile"}
	for _, v := range values {
		p.Details = append(p.Details, &anypb.Any{TypeUrl: url, Value: []byte(v)})
	}
	return testserver.FailStatus(status.FromProto(p))
}

// retryInfos are hostile details, as they go over the wire: field 1 is the delay, in it 1 the seconds and 2
// the nanoseconds.
func retryInfos() []hostility {
	const (
		five   = "\x0a\x02\x08\x05"
		most   = "\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
		least  = "\x0a\x0b\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
		nanos  = "\x0a\x06\x10\xff\xff\xff\xff\x0f"
		mixed  = "\x0a\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
		cut    = "\x0a\xff"
		groups = "\x0b"
	)
	return []hostility{
		{"RetryInfo the largest", details(retryInfoURL, most), 1, 0},
		{"RetryInfo the least", details(retryInfoURL, least), 4, unsaid},
		{"RetryInfo with too many nanoseconds", details(retryInfoURL, nanos), 4, unsaid},
		{"RetryInfo with signs that differ", details(retryInfoURL, mixed), 4, unsaid},
		{"RetryInfo without delay", details(retryInfoURL, ""), 4, unsaid},
		{"RetryInfo that is cut", details(retryInfoURL, cut), 4, unsaid},
		{"RetryInfo of open groups", details(retryInfoURL, strings.Repeat(groups, 10_000)), 4, unsaid},
		{"RetryInfo a thousand times", details(retryInfoURL, strings.Split(strings.Repeat(five+" ", 1000)+five, " ")...), 4, 15 * time.Second},
		{"RetryInfo a good one and the largest", details(retryInfoURL, five, most), 1, 0},
		{"RetryInfo a bad one and a good one", details(retryInfoURL, cut, five), 4, 15 * time.Second},
		{"details of no type", details("", five), 4, unsaid},
		{"details of an unknown type", details("x/no.such.Type", five), 4, unsaid},
		{"details of 64 KiB", details("x/no.such.Type", strings.Repeat("x", 64<<10)), 4, unsaid},
		{"RetryInfo of the longest Duration", testserver.Fail(codes.Unavailable).RetryInfo(math.MaxInt64), 1, 0},
		{"RetryInfo of the shortest Duration", testserver.Fail(codes.Unavailable).RetryInfo(math.MinInt64), 4, unsaid},
	}
}

// floods are answers that are too large.
func floods() []hostility {
	keys := metadata.MD{}
	for i := range 2000 {
		keys.Append(fmt.Sprintf("key-%d", i), "value")
	}
	large := metadata.Pairs("large", strings.Repeat("x", 64<<10))
	return []hostility{
		{"thousands of trailers", down().Trailer(keys), 4, unsaid},
		{"a trailer of 64 KiB", down().Trailer(large), 4, unsaid},
		{"thousands of headers", down().Header(keys), 4, unsaid},
		{"a header of 64 KiB, and nonsense", down().Header(large).Header(metadata.Pairs("retry-after", "soon", "grpc-retry-pushback-ms", "-1")), 4, unsaid},
		{"a message of 64 KiB", testserver.Fail(codes.Unavailable, strings.Repeat("\x00\xff%", 7_000)), 4, unsaid},
		{"all at once", details(retryInfoURL, "\xff").Trailer(keys).Trailer(large).Trailer(metadata.Pairs("retry-after", "soon")).Pushback("soon"), 1, 0},
	}
}

// Raw answers that no gRPC server would send.
func TestHostile_Bytes(t *testing.T) {
	t.Parallel()
	unavailable := func(pairs ...string) []string { return append([]string{"grpc-status", "14"}, pairs...) }
	disagreeing := base64.RawStdEncoding.EncodeToString([]byte("\x08\x05")) // says NOT_FOUND
	for name, row := range map[string]struct {
		trailers []string
		code     codes.Code
		attempts int
		elapsed  time.Duration
	}{
		"nothing hostile":             {unavailable(), codes.Unavailable, 4, unsaid},
		"no status":                   {nil, codes.Unknown, 1, 0},
		"a status of no meaning":      {[]string{"grpc-status", "99"}, codes.Code(99), 1, 0},
		"a status beyond 32 bits":     {[]string{"grpc-status", "4294967310"}, codes.Unknown, 1, 0},
		"a negative status":           {[]string{"grpc-status", "-14"}, codes.Code(1<<32 - 14), 1, 0},
		"a status that is no number":  {[]string{"grpc-status", "UNAVAILABLE"}, codes.Unknown, 1, 0},
		"details that are not base64": {unavailable("grpc-status-details-bin", "!!!"), codes.Internal, 1, 0},
		"details that are no message": {unavailable("grpc-status-details-bin", "////"), codes.Unavailable, 4, unsaid},
		"details of another code":     {unavailable("grpc-status-details-bin", disagreeing), codes.Internal, 1, 0},
		"pushback in two fields":      {unavailable("grpc-retry-pushback-ms", "5", "grpc-retry-pushback-ms", "5"), codes.Unavailable, 1, 0},
		"pushback in one, with comma": {unavailable("grpc-retry-pushback-ms", "5, 5"), codes.Unavailable, 1, 0},
		"pushback of other digits":    {unavailable("grpc-retry-pushback-ms", "٥"), codes.Unavailable, 1, 0},
		"pushback with control bytes": {unavailable("grpc-retry-pushback-ms", "5\x00"), codes.Internal, 1, 0},
		"a message that is not UTF-8": {unavailable("grpc-message", "%ff%zz%"), codes.Unavailable, 4, unsaid},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					streams, err := hearFrom(t, row.trailers, stream)
					if status.Code(err) != row.code || streams != row.attempts || time.Since(start) != row.elapsed {
						t.Errorf("%v after %d attempts in %v; want %v after %d in %v", err, streams, time.Since(start), row.code, row.attempts, row.elapsed)
					}
				})
			})
		}
	}
}

// hearFrom makes a call to a server that answers every stream with these trailers, and nothing else, and counts its attempts:
// gRPC's own server would not say such things.
func hearFrom(t *testing.T, trailers []string, stream bool) (streams int, err error) {
	t.Helper()
	conn := speaking(t, mustNew(t, mustSet(t, config(plain())), quiet), func(f *http2.Framer, frame http2.Frame) {
		if frame, ok := frame.(*http2.HeadersFrame); ok {
			streams++
			writeHeaders(f, frame.StreamID, true, append([]string{":status", "200", "content-type", "application/grpc"}, trailers...)...)
		}
	})
	err = ask(t.Context(), conn, !stream)
	return streams, err
}
