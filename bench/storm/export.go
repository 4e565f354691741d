// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
)

func newFile(seed uint64, tallies []*tally) file {
	f := file{Seed: seed, Results: lines(tallies)}
	for _, t := range tallies {
		f.Storms = append(f.Storms, newStormLine(t.storm))
		for i, c := range t.who {
			r := t.results[i]
			for _, v := range r.verdicts {
				f.Verdicts = append(f.Verdicts, verdictLine{t.storm.name, c.name, v.claim, v.is, v.beside, string(v.judgement), v.why})
			}
			f.Series = append(f.Series, seriesLine{t.storm.name, c.name, r.series.at, r.series.calls, r.series.good, r.series.requests})
		}
	}
	return f
}

func newStormLine(s storm) stormLine {
	sh := s.shape()
	l := stormLine{
		Name: s.name, What: s.what, Services: s.depth(), Backends: sh.backends, Workers: sh.workers,
		Service: sh.service.Seconds(), Queue: sh.queue, Capacity: sh.capacity(),
		AttemptTimeout: s.attemptTimeout.Seconds(), Deadline: s.callTimeout().Seconds(),
	}
	for _, p := range s.phases {
		l.Phases = append(l.Phases, phaseLine{p.kind.String(), p.length.Seconds(), p.load})
	}
	return l
}

func lines(tallies []*tally) []line {
	var list []line
	for _, t := range tallies {
		for i, x := range t.results {
			l := line{
				Storm: t.storm.name, Client: t.who[i].name, Calls: x.calls, Success: x.success, Goodput: x.goodput,
				Peak: x.peak, PerCall: x.perCall, Services: x.services, P50: inMillis(x.p50), P99: inMillis(x.p99),
				P999: inMillis(x.p999), Late: inMillis(x.late), Target: t.storm.target.String(),
			}
			if j := x.judgement(); j != unjudged {
				l.Judgement = string(j)
			}
			if x.recovery.state == returned {
				l.Recovery, l.Recovered = new(x.recovery.took.Seconds()), true
			}
			list = append(list, l)
		}
	}
	return list
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func writeJSON(w io.Writer, f file) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(f)
}

// writeCSV writes the results alone.
func writeCSV(w io.Writer, f file) error {
	out := csv.NewWriter(w)
	rows := append(make([][]string, 0, 1+len(f.Results)), []string{
		stormColumn, "client", "calls", "success", "goodputPerS", "recoveryS", "recovered", "peakPerCapacity",
		"requestsPerCall", "requestsByService", "p50Ms", "p99Ms", "p999Ms", "lateP99Ms", "target", "judgement",
	})
	for _, l := range f.Results {
		recovery := ""
		if l.Recovery != nil {
			recovery = number(*l.Recovery)
		}
		services := make([]string, len(l.Services))
		for i, n := range l.Services {
			services[i] = number(n)
		}
		rows = append(rows, []string{
			l.Storm, l.Client, strconv.Itoa(l.Calls), number(l.Success), number(l.Goodput), recovery,
			strconv.FormatBool(l.Recovered), number(l.Peak), number(l.PerCall), strings.Join(services, " "), number(l.P50),
			number(l.P99), number(l.P999), number(l.Late), l.Target, l.Judgement,
		})
	}
	return out.WriteAll(rows)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
