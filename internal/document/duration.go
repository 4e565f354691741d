// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// protoDuration is the JSON form of google.protobuf.Duration.
var protoDuration = regexp.MustCompile(`^(-?)([0-9]+)(?:\.([0-9]{1,9}))?s$`)

func (d Decoder) duration(field string, n *Node) (time.Duration, bool) {
	const form = `must be seconds with at most nine decimals and an "s", such as "0.05s"`
	if n.Kind == Number && jsonNumber.MatchString(n.Text) {
		d.Report.Misread(field, n, `must have its unit: "%ss"`, Shorten(n.Text))
		return 0, false
	}
	if n.Kind != Text {
		d.Report.Misfit(field, n, form)
		return 0, false
	}
	parts := protoDuration.FindStringSubmatch(n.Text)
	if parts == nil {
		d.Report.Misread(field, n, "%s", cmp.Or(meant(n.Text), form))
		return 0, false
	}
	t, ok := seconds(parts[2], parts[3])
	if !ok {
		d.Report.Misread(field, n, "must be at most %ds, 292 years", MaxSeconds)
		return 0, false
	}
	if parts[1] != "" {
		t = -t
	}
	return t, true
}

// MaxSeconds is what a time.Duration can hold with any fraction; a protobuf Duration holds more.
const MaxSeconds = math.MaxInt64/int64(time.Second) - 1

// seconds joins the digits on both sides of the point.
func seconds(whole, fraction string) (time.Duration, bool) {
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || s > MaxSeconds {
		return 0, false
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Duration(s)*time.Second + time.Duration(nanos), err == nil
}

// tooFine is what Go would round to nanoseconds.
var tooFine = regexp.MustCompile(`\.[0-9]{10}`)

// meant is what to write for a duration in Go's form; "" if text is none.
func meant(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil || d == 0 || tooFine.MatchString(text) {
		return ""
	}
	return `must be in seconds: "` + FormatDuration(d) + `"`
}

// FormatDuration writes a duration as a document does.
func FormatDuration(d time.Duration) string {
	sign := ""
	u := uint64(d)
	if d < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u/1e9, 10)
	if nanos := u % 1e9; nanos > 0 {
		s += "." + strings.TrimRight(strconv.FormatUint(1e9+nanos, 10)[1:], "0")
	}
	return sign + s + "s"
}
