// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// line is a result for other programs.
type line struct {
	Storm     string   `json:"storm"`
	Client    string   `json:"client"`
	Calls     int      `json:"calls"`
	Success   float64  `json:"success"`         // of the calls, 0 to 1
	Goodput   float64  `json:"goodputPerS"`     // calls
	Recovery  *float64 `json:"recoveryS"`       // null: never, or nothing to recover from
	Recovered bool     `json:"recovered"`       // false: never, or nothing to recover from
	Peak      float64  `json:"peakPerCapacity"` // arrivals in 200 ms
	PerCall   float64  `json:"requestsPerCall"`
	P50       float64  `json:"p50Ms"`
	P99       float64  `json:"p99Ms"`
	P999      float64  `json:"p999Ms"`
	Late      float64  `json:"lateP99Ms"` // of the beginnings of calls: the machine's fault
	Target    string   `json:"target"`
	Judgement string   `json:"judgement"` // PASS, MISS, VOID or ""
}

func lines(reports []report) []line {
	var list []line
	for _, r := range reports {
		for i, x := range r.results {
			l := line{
				Storm: r.storm.name, Client: r.names[i], Calls: x.calls, Success: x.success, Goodput: x.goodput,
				Peak: x.peak, PerCall: x.perCall, P50: inMillis(x.p50), P99: inMillis(x.p99), P999: inMillis(x.p999),
				Late: inMillis(x.late), Target: r.storm.target.String(),
			}
			if x.judgement != unjudged {
				l.Judgement = string(x.judgement)
			}
			if x.recovery.state == returned {
				seconds := x.recovery.took.Seconds()
				l.Recovery, l.Recovered = &seconds, true
			}
			list = append(list, l)
		}
	}
	return list
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func writeJSON(w io.Writer, list []line) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}

func writeCSV(w io.Writer, list []line) error {
	out := csv.NewWriter(w)
	rows := append(make([][]string, 0, 1+len(list)), []string{
		"storm", "client", "calls", "success", "goodputPerS", "recoveryS", "recovered", "peakPerCapacity",
		"requestsPerCall", "p50Ms", "p99Ms", "p999Ms", "lateP99Ms", "target", "judgement",
	})
	for _, l := range list {
		recovery := ""
		if l.Recovery != nil {
			recovery = number(*l.Recovery)
		}
		rows = append(rows, []string{
			l.Storm, l.Client, strconv.Itoa(l.Calls), number(l.Success), number(l.Goodput), recovery,
			strconv.FormatBool(l.Recovered), number(l.Peak), number(l.PerCall), number(l.P50), number(l.P99),
			number(l.P999), number(l.Late), l.Target, l.Judgement,
		})
	}
	return out.WriteAll(rows)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
