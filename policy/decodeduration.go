// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

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

func decodeDuration(ps *problems, path string, n *node) (time.Duration, bool) {
	const form = `must be seconds with at most nine decimals and an "s", such as "0.05s"`
	if n.kind == number && jsonNumber.MatchString(n.text) {
		ps.misread(path, n, `must have its unit: "%ss"`, shorten(n.text))
		return 0, false
	}
	if n.kind != text {
		misfit(ps, path, n, form)
		return 0, false
	}
	parts := protoDuration.FindStringSubmatch(n.text)
	if parts == nil {
		ps.misread(path, n, "%s", cmp.Or(meant(n.text), form))
		return 0, false
	}
	d, ok := seconds(parts[2], parts[3])
	if !ok {
		ps.misread(path, n, "must be at most %ds, 292 years", maxSeconds)
		return 0, false
	}
	if parts[1] != "" {
		d = -d
	}
	return d, true
}

// maxSeconds is what a time.Duration can hold with any fraction; a protobuf Duration holds more.
const maxSeconds = math.MaxInt64/int64(time.Second) - 1

// seconds joins the digits on both sides of the point.
func seconds(whole, fraction string) (time.Duration, bool) {
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || s > maxSeconds {
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
	return `must be in seconds: "` + formatDuration(d) + `"`
}

// formatDuration writes a duration as a policy file does.
func formatDuration(d time.Duration) string {
	sign := ""
	u := uint64(d) //nolint:gosec // the bits of the longest negative duration are its size too
	if d < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u/1e9, 10)
	if nanos := u % 1e9; nanos > 0 {
		s += "." + strings.TrimRight(strconv.FormatUint(1e9+nanos, 10)[1:], "0")
	}
	return sign + s + "s"
}
