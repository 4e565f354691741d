// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc/codes"
)

func (f *fields) phase() Phase {
	defer f.end()
	p := Phase{
		Name:   f.name("name"),
		Kind:   Kind(f.word("kind", "TROUBLE", "LEAD", "AFTER")),
		Length: f.duration("length", 0, 10*time.Millisecond, mostLength),
		Load:   f.number("load", 1, 1e6, false),
	}
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
		Slower:  f.number("slower", 0, 1e6, true),
		Code:    f.code("code", codes.Unavailable),
	}
	if f.has("workers") {
		fault.Workers = new(f.count("workers", 0, 0, 1_000_000))
	} else {
		f.asked = append(f.asked, "workers")
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
		f.add(f.at, f.path, "", "says of no trouble; must have down, hang, flaky, slow, slower or workers")
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
	for _, n := range f.items("backends") {
		i, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil || i < 0 || slices.Contains(list, i) {
			f.add(n, f.under("backends"), shown(n), "must be backends by their numbers, from 0, each once")
			continue
		}
		list = append(list, i)
	}
	if f.has("backends") && len(list) == 0 {
		f.wrong("backends", "must name at least one backend by its number, from 0; leave it out for all")
	}
	return list
}

func (f *fields) variant() Variant {
	defer f.end()
	v := Variant{
		Name:    f.name("name"),
		All:     f.text("policy"),
		Clients: f.count("clients", 0, 1, mostClients),
	}
	if in := f.inside("policies"); in != nil {
		v.Policies = map[string]string{}
		for _, name := range in.keys() {
			v.Policies[name] = in.text(name)
		}
	}
	if f.has("guard") {
		v.Guard = new(f.flag("guard", true))
	} else {
		f.asked = append(f.asked, "guard")
	}
	return v
}
