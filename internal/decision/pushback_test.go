// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/policy"
)

// gRFC A6: a signed 32-bit integer without needless leading zeros. grpc-go itself accepts "+5", "005" and 64 bits; here they
// mean stop, as everything outside the grammar does.
func TestParsePushback(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0":          0,
		"5":          5 * ms,
		"1000":       time.Second,
		"2147483647": math.MaxInt32 * ms,
	} {
		if got, ok := decision.ParsePushback(text); !ok || got != want {
			t.Errorf("ParsePushback(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"-1", "-0", "-2147483648", "2147483648", "-2147483649", "9223372036854775807", "99999999999999999999",
		"+5", "005", "00", "", " 5", "5 ", "1.5", "1e3", "0x10", "1_000", "abc", "５", strings.Repeat("1", 64<<10),
	} {
		if got, ok := decision.ParsePushback(text); ok {
			t.Errorf("ParsePushback(%.20q) = %v; want stop", text, got)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"0":                             0,
		"120":                           2 * time.Minute,
		"2147483648":                    2147483648 * time.Second,
		"9223372036":                    9223372036 * time.Second,
		"9223372037":                    math.MaxInt64,
		"99999999999":                   math.MaxInt64,
		"99999999999999999999999":       math.MaxInt64,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
	} {
		if got, ok := decision.ParseRetryAfter(text, now); !ok || got != want {
			t.Errorf("ParseRetryAfter(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1.5", "soon"} {
		if got, ok := decision.ParseRetryAfter(text, now); ok {
			t.Errorf("ParseRetryAfter(%q) = %v; want nothing", text, got)
		}
	}
}

// withDetails returns RESOURCE_EXHAUSTED with a RetryInfo for each delay.
func withDetails(t *testing.T, delays ...*durationpb.Duration) *status.Status {
	t.Helper()
	p := status.New(codes.ResourceExhausted, "slow down").Proto()
	for _, d := range delays {
		detail, err := anypb.New(&errdetails.RetryInfo{RetryDelay: d})
		if err != nil {
			t.Fatal(err)
		}
		p.Details = append(p.Details, detail)
	}
	return status.FromProto(p)
}

func TestReadPushbackOrder(t *testing.T) {
	t.Parallel()
	plain := status.New(codes.Unavailable, "")
	info := withDetails(t, durationpb.New(2*time.Second))
	for _, row := range []struct {
		name    string
		st      *status.Status
		trailer metadata.MD
		want    decision.Pushback
	}{
		{"nothing said", plain, nil, decision.Pushback{}},
		{"trailer", plain, metadata.Pairs(decision.PushbackTrailer, "100"), decision.Pushback{Source: decision.PushbackTrailer, Delay: 100 * ms}},
		{"negative stops", plain, metadata.Pairs(decision.PushbackTrailer, "-1"), decision.Pushback{Source: decision.PushbackTrailer, Stop: true}},
		{"malformed stops", plain, metadata.Pairs(decision.PushbackTrailer, "soon"), decision.Pushback{Source: decision.PushbackTrailer, Stop: true}},
		{"two values stop", plain, metadata.Pairs(decision.PushbackTrailer, "7", decision.PushbackTrailer, "8"), decision.Pushback{Source: decision.PushbackTrailer, Stop: true}},
		{"RetryInfo", info, nil, decision.Pushback{Source: decision.RetryInfo, Delay: 2 * time.Second}},
		{"trailer before RetryInfo", info, metadata.Pairs(decision.PushbackTrailer, "1"), decision.Pushback{Source: decision.PushbackTrailer, Delay: ms}},
		{"RetryInfo before retry-after", info, metadata.Pairs(decision.RetryAfter, "9"), decision.Pushback{Source: decision.RetryInfo, Delay: 2 * time.Second}},
		{"retry-after in the trailer", plain, metadata.Pairs(decision.RetryAfter, "3"), decision.Pushback{Source: decision.RetryAfter, Delay: 3 * time.Second}},
		{"malformed retry-after says nothing", plain, metadata.Pairs(decision.RetryAfter, "soon"), decision.Pushback{}},
		{"the longest RetryInfo holds", withDetails(t, durationpb.New(time.Second), durationpb.New(3*time.Second)), nil, decision.Pushback{Source: decision.RetryInfo, Delay: 3 * time.Second}},
		{"RetryInfo of 0", withDetails(t, durationpb.New(0)), nil, decision.Pushback{Source: decision.RetryInfo}},
		{"negative RetryInfo says nothing", withDetails(t, durationpb.New(-time.Second)), nil, decision.Pushback{}},
		{"RetryInfo without delay says nothing", withDetails(t, nil), nil, decision.Pushback{}},
		{"invalid RetryInfo says nothing", withDetails(t, &durationpb.Duration{Seconds: 1, Nanos: -1}), nil, decision.Pushback{}},
		{"RetryInfo beyond its type is the longest", withDetails(t, &durationpb.Duration{Seconds: math.MaxInt64}), nil, decision.Pushback{Source: decision.RetryInfo, Delay: math.MaxInt64}},
		{"huge RetryInfo saturates", withDetails(t, &durationpb.Duration{Seconds: 315_576_000_000}), nil, decision.Pushback{Source: decision.RetryInfo, Delay: math.MaxInt64}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := decision.ReadPushback(row.st, row.trailer, time.Unix(0, 0)); got != row.want {
				t.Errorf("ReadPushback = %+v; want %+v", got, row.want)
			}
		})
	}
}

func TestReadPushbackBadDetails(t *testing.T) {
	t.Parallel()
	p := status.New(codes.Unavailable, "").Proto()
	p.Details = []*anypb.Any{
		{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: []byte{0xff, 0xff, 0xff}},
		{TypeUrl: "type.googleapis.com/no.such.Message", Value: []byte("x")},
		{},
		nil,
	}
	if got := decision.ReadPushback(status.FromProto(p), nil, time.Unix(0, 0)); got != (decision.Pushback{}) {
		t.Errorf("ReadPushback = %+v; want nothing", got)
	}
	p.Details = append(p.Details, withDetails(t, durationpb.New(time.Second)).Proto().GetDetails()...)
	if got := decision.ReadPushback(status.FromProto(p), nil, time.Unix(0, 0)); got.Delay != time.Second {
		t.Errorf("ReadPushback = %+v; want the RetryInfo behind them", got)
	}
}

var grammar = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

func FuzzParsePushback(f *testing.F) {
	for _, seed := range []string{"0", "5", "-1", "005", "+5", "2147483647", "2147483648", "", " 1", "1e3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		delay, ok := decision.ParsePushback(text)
		if ok != (grammar.MatchString(text) && (len(text) < 10 || len(text) == 10 && text <= "2147483647")) {
			t.Errorf("ParsePushback(%q) ok = %v", text, ok)
		}
		if ok && fmt.Sprint(delay.Milliseconds()) != text {
			t.Errorf("ParsePushback(%q) = %v", text, delay)
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	f.Add("120", int64(0))
	f.Add("Sun, 01 Mar 2026 12:00:30 GMT", int64(1_772_366_400))
	f.Fuzz(func(t *testing.T, text string, now int64) {
		if delay, ok := decision.ParseRetryAfter(text, time.Unix(now, 0)); ok && delay < 0 {
			t.Errorf("ParseRetryAfter(%q) = %v", text, delay)
		}
	})
}

// FuzzServersWord tests the decision with all pushback that a server may send.
func FuzzServersWord(f *testing.F) {
	f.Add("5", "", "120", "type.googleapis.com/google.rpc.RetryInfo", []byte("\x0a\x02\x08\x05"), 0.5)
	f.Add("-1", "7", "Fri, 31 Dec 9999 23:59:59 GMT", "", []byte{}, 0.0)
	f.Add("", "", "99999999999999999999", "type.googleapis.com/google.rpc.RetryInfo", []byte("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 0.999)
	p := mustPolicy(f, nil)
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
		push := decision.ReadPushback(st, trailer, noon)
		if push.Delay < 0 || (push.Stop || push.Delay > 0) && push.Source == "" || push.Stop && push.Delay != 0 {
			t.Errorf("ReadPushback = %+v", push)
		}
		d := decided(p, decision.Outcome{Status: st, Trailer: trailer}, func(s *decision.Situation) { s.Chance = r })
		least := push.Delay
		if push.Source != decision.PushbackTrailer {
			least = max(least, 100*ms)
		}
		switch {
		case d.Retry && (d.Delay < least || d.Delay-least > push.Delay/10 || push.Delay > defaults.MaxPushback),
			d.Retry == (push.Stop || push.Delay > defaults.MaxPushback),
			!d.Retry && d.Reason != policy.ReasonPushbackStop:
			t.Errorf("%+v after %+v", d, push)
		}
	})
}
