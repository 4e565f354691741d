// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
)

// phases returns the phases of a list, with each group's phases repeated, and the field of each phase.
func phases(f *document.Fields) (list []Phase, paths []string) {
	f.Items("phases", func(path string, n *document.Node) {
		document.ReadFields(f.Report, path, n, func(f *document.Fields) {
			if f.Get("phases") == nil && f.Get("repeat") == nil {
				var p Phase
				p.phaseKeys(f)
				list, paths = append(list, p), append(paths, path)
				return
			}
			inside, at := phases(f)
			f.Require("must be the phases that are repeated", "phases")
			f.Require("must be how often the phases are repeated", "repeat")
			var times int
			if f.Int("repeat", &times, 0, 1, mostPhases); len(list)+times*len(inside) > mostPhases {
				f.Wrong("repeat", "makes more than %d phases; must be less", mostPhases)
				return
			}
			for range times {
				list, paths = append(list, inside...), append(paths, at...)
			}
		})
	})
	return list, paths
}

func (p *Phase) phaseKeys(f *document.Fields) {
	f.RequiredText("name", &p.Name)
	word(f, "kind", &p.Kind, "TROUBLE", "LEAD", "AFTER")
	f.Duration("length", &p.Length, 0, 10*time.Millisecond, mostLength)
	f.Require(`must be a time such as "10s"`, "length")
	if n := f.Get("load"); p.LoadTo != nil || n != nil && n.Kind == document.Object {
		to := new(float64)
		if f.Writing {
			*to = *p.LoadTo
		}
		f.Object("load", func(f *document.Fields) {
			f.Require("a load that changes is {from: 0.5, to: 1.5}", "from", "to")
			f.Number("from", &p.Load, always, mostTimes, false)
			f.Number("to", to, always, mostTimes, false)
		})
		p.LoadTo = to
	} else {
		f.Number("load", &p.Load, 1, mostTimes, false)
	}
	document.Objects(f, "faults", &p.Faults, (*Fault).faultKeys)
}

func (t *Fault) faultKeys(f *document.Fields) {
	f.RequiredText("service", &t.Service)
	t.backends(f)
	f.Bool("down", &t.Down, false)
	f.Bool("hang", &t.Hang, false)
	f.Number("flaky", &t.Flaky, 0, 1, true)
	if f.Has("slow", t.Slow != nil) {
		var slow Slow
		if f.Writing {
			slow = *t.Slow
		}
		f.Object("slow", func(f *document.Fields) {
			f.Number("part", &slow.Part, 0, 1, true)
			distribution(f, "by", &slow.By)
		})
		if slow.Part == 0 || slow.By == nil {
			f.Wrong("slow", "must have the part of the requests that wait, and by how much longer: {part: 0.01, by: 1s}")
		}
		t.Slow = &slow
	}
	f.Number("slower", &t.Slower, 0, mostTimes, true)
	if f.Has("workers", t.Workers != nil) {
		var workers int
		if f.Writing {
			workers = *t.Workers
		}
		f.Int("workers", &workers, always, 0, 1_000_000)
		t.Workers = &workers
	}
	code(f, "code", &t.Code, codes.Unavailable)
	t.pushback(f)
	if !f.Writing && !t.Down && !t.Hang && t.Flaky == 0 && t.Slow == nil && t.Slower == 0 && t.Workers == nil {
		f.Errorf(f.Path, nil, "has no trouble; must have down, hang, flaky, slow, slower or workers")
	}
}

// pushback reads or writes a time, or "STOP".
func (t *Fault) pushback(f *document.Fields) {
	const key, stop = "pushback", "STOP"
	n := f.Get(key)
	switch {
	case f.Writing && t.Pushback == nil, !f.Writing && n == nil:
	case f.Writing && *t.Pushback < 0:
		f.Put(key, &document.Node{Kind: document.Text, Text: stop})
	case n != nil && n.Text == stop:
		t.Pushback = new(time.Duration(-1))
	default:
		var wait time.Duration
		if f.Writing {
			wait = *t.Pushback
		}
		f.Duration(key, &wait, always, 0, time.Hour)
		t.Pushback = &wait
	}
}

// backends reads or writes the backends' numbers.
func (t *Fault) backends(f *document.Fields) {
	const key = "backends"
	if f.Writing {
		written := make([]*document.Node, len(t.Backends))
		for i, b := range t.Backends {
			written[i] = &document.Node{Kind: document.Number, Text: strconv.Itoa(b)}
		}
		f.PutList(key, written)
		return
	}
	if n := f.Get(key); n != nil && n.Kind == document.List && len(n.Items) == 0 {
		f.Wrong(key, "must name at least one backend by its number, from 0; leave it out for all")
	}
	f.Items(key, func(path string, n *document.Node) {
		b, err := strconv.Atoi(n.Text)
		if n.Kind != document.Number || err != nil || b < 0 || slices.Contains(t.Backends, b) {
			f.Misfit(path, n, "must be a backend by its number, from 0, each once")
			return
		}
		t.Backends = append(t.Backends, b)
	})
}
