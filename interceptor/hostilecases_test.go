// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// hostility is what a server answers to every attempt, and what must come of it.
type hostility struct {
	name     string
	step     testserver.Step
	attempts int
	elapsed  time.Duration
}

const (
	unsaid  = 700 * ms // of backoffs, when the server's word counts as not said
	longest = 3 * policy.DefaultMaxPushback
)

// pushbacks are hostile values of grpc-retry-pushback-ms: what is not the grammar means stop.
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

// retryAfters are hostile values of retry-after: one that makes no sense counts as not said.
func retryAfters() (list []hostility) {
	for _, value := range []string{
		"", "-1", "+1", "1.5", "1e9", "NaN", "0x10", "soon", "Sun, 99 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 99999 12:00:30 GMT",
		strings.Repeat("A", 64<<10),
	} {
		list = append(list, hostility{fmt.Sprintf("retry-after %.20q", value), down().RetryAfter(value), 4, unsaid})
	}
	for _, value := range []string{"301", "9223372036", "9223372037", "99999999999999999999", strings.Repeat("9", 64<<10), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		list = append(list, hostility{fmt.Sprintf("retry-after %.40q is too long", value), down().RetryAfter(value), 1, 0})
	}
	return append(list,
		hostility{"retry-after a date long past", down().RetryAfter("Sun, 06 Nov 1994 08:49:37 GMT"), 4, 0},
		hostility{"retry-after twice", down().RetryAfter("5").RetryAfter("7"), 4, unsaid},
		hostility{"retry-after the most", down().RetryAfter("300"), 4, longest})
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

// floods are answers that are too much.
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
		{"all at once", details(retryInfoURL, "\xff").Trailer(keys).Trailer(large).RetryAfter("soon").Pushback("soon"), 1, 0},
	}
}
