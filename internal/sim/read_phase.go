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

// phases are those of a list, in which a group stands for its phases as often as it is repeated; and the field of each.
func (f *fields) phases() (list []Phase, paths []string) {
	for _, in := range f.objects("phases") {
		if !in.has("phases") && !in.has("repeat") {
			list, paths = append(list, in.phase()), append(paths, in.path)
			continue
		}
		inside, at := in.phases()
		times := in.count("repeat", 0, 1, mostPhases)
		switch {
		case !in.has("repeat"):
			in.wrong("repeat", "must be how often the phases are repeated")
		case !in.has("phases"):
			in.wrong("phases", "must be the phases that are repeated")
		case len(list)+times*len(inside) > mostPhases:
			in.wrong("repeat", "makes more than %d phases; must be less", mostPhases)
			times = 0
		}
		for range times {
			list, paths = append(list, inside...), append(paths, at...)
		}
		in.end()
	}
	return list, paths
}

// load is that of a phase: a number, or from one to another.
func (f *fields) load() (from float64, to *float64) {
	if n := f.get("load"); n == nil || n.Kind != document.Object {
		return f.number("load", 1, mostTimes, false), nil
	}
	in := f.inside("load")
	defer in.end()
	for _, k := range []string{"from", "to"} {
		if !in.has(k) {
			in.wrong(k, "a load that changes is {from: 0.5, to: 1.5}")
		}
	}
	return in.number("from", 1, mostTimes, false), new(in.number("to", 1, mostTimes, false))
}

func (f *fields) phase() Phase {
	defer f.end()
	p := Phase{
		Name:   f.name("name"),
		Kind:   Kind(f.word("kind", "TROUBLE", "LEAD", "AFTER")),
		Length: f.duration("length", 0, 10*time.Millisecond, mostLength),
	}
	p.Load, p.LoadTo = f.load()
	if !f.has("length") {
		f.wrong("length", `must be a time such as "10s"`)
	}
	for _, in := range f.objects("faults") {
		p.Faults = append(p.Faults, in.fault())
	}
	return p
}

func (f *fields) fault() Fault {
	defer f.end()
	fault := Fault{
		Service: f.name("service"),
		Down:    f.flag("down", false),
		Hang:    f.flag("hang", false),
		Flaky:   f.number("flaky", 0, 1, true),
		Slower:  f.number("slower", 0, mostTimes, true),
		Code:    f.code("code", codes.Unavailable),
	}
	if f.has("workers") {
		fault.Workers = new(f.count("workers", 0, 0, 1_000_000))
	}
	if in := f.inside("slow"); in != nil {
		fault.Slow = &Slow{Part: in.number("part", 0, 1, true), By: in.distribution("by")}
		if fault.Slow.Part == 0 || fault.Slow.By == nil {
			f.wrong("slow", "must say which part of the requests waits, and by how much longer: {part: 0.01, by: 1s}")
		}
		in.end()
	}
	fault.Pushback = f.pushback()
	fault.Backends = f.backends()
	if !fault.Down && !fault.Hang && fault.Flaky == 0 && fault.Slow == nil && fault.Slower == 0 && fault.Workers == nil {
		f.Errorf(f.path, nil, "says of no trouble; must have down, hang, flaky, slow, slower or workers")
	}
	return fault
}

func (f *fields) pushback() *time.Duration {
	if f.text("pushback") == "STOP" {
		return new(time.Duration(-1))
	}
	if !f.has("pushback") {
		return nil
	}
	return new(f.duration("pushback", 0, 0, time.Hour))
}

func (f *fields) backends() []int {
	var list []int
	for i, n := range f.items("backends") {
		backend, err := strconv.Atoi(n.Text)
		if n.Kind != document.Number || err != nil || backend < 0 || slices.Contains(list, backend) {
			f.Misfit(document.Item(f.under("backends"), i), n, "must be a backend by its number, from 0, each once")
			continue
		}
		list = append(list, backend)
	}
	if f.has("backends") && len(f.items("backends")) == 0 {
		f.wrong("backends", "must name at least one backend by its number, from 0; leave it out for all")
	}
	return list
}
