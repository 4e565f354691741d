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

// The bounds of what can be asked for.
const (
	mostClients  = 10_000_000
	mostBackends = 100_000
	mostLength   = 24 * time.Hour
	mostRate     = 1e8
	mostBuckets  = 100_000
	mostTimes    = 1e6 // of a time or a rate
	mostPhases   = 10_000
	mostVariants = 100
	mostPolicies = 100
)

// scenario reads the whole file.
func (r *reader) scenario(f *fields, read func(string) ([]byte, error)) *Scenario {
	defer f.end()
	s := &Scenario{
		Title: f.name("title"),
		About: f.text("about"),
		Seed:  uint64(f.count("seed", 1, 1, 1<<53)),
	}
	s.Recovery = defaultRecovery
	if in := f.inside("recovery"); in != nil {
		s.Recovery.Success = in.number("success", s.Recovery.Success, 1, true)
		s.Recovery.Window = in.duration("window", s.Recovery.Window, 25*time.Millisecond, time.Hour)
		in.end()
	}
	s.Policies = r.policies(f.inside("policies"), read)
	for _, in := range f.objects("services") {
		s.Services = append(s.Services, in.service())
	}
	for _, in := range f.objects("fleets") {
		s.Fleets = append(s.Fleets, in.fleet())
	}
	s.Phases, r.phasePaths = f.phases()
	for _, in := range f.objects("variants") {
		s.Variants = append(s.Variants, in.variant())
	}
	s.Bucket = f.duration("bucket", s.bucket(), time.Millisecond, time.Hour)
	if r.ErrorCount() == 0 {
		r.check(s)
	}
	return s
}

// bucket is what a file gets that names none: about two hundred buckets, of whole tenths of a second.
func (s *Scenario) bucket() time.Duration {
	return max((s.Length() / 200).Round(100*time.Millisecond), 200*time.Millisecond)
}

func (f *fields) service() Service {
	defer f.end()
	s := Service{
		Name:      f.name("name"),
		Backends:  f.count("backends", 1, 1, mostBackends),
		Workers:   f.count("workers", 1, 1, 1_000_000),
		Queue:     f.count("queue", 0, 0, 100_000_000),
		Order:     Order(f.word("order", "FIFO", "LIFO")),
		Time:      f.distribution("time"),
		Refuse:    f.code("refuse", codes.ResourceExhausted),
		Abandoned: Abandoned(f.word("abandoned", "SERVE", "DROP")),
		Guard:     f.flag("guard", true),
		Reports:   f.flag("reportsUtilization", false),
	}
	if s.Time == nil || s.Time.Mean() <= 0 {
		f.wrong("time", "must be how long a worker needs for a request, more than 0s on average")
	}
	for _, in := range f.objects("calls") {
		c := in.call()
		c.Clients = in.count("clients", 0, 1, mostBackends)
		s.Calls = append(s.Calls, c)
		in.end()
	}
	return s
}

func (f *fields) call() Call {
	return Call{
		Service:     f.name("service"),
		Method:      f.text("method"),
		Policy:      f.text("policy"),
		Deadline:    f.duration("deadline", 0, time.Millisecond, time.Hour),
		Work:        f.number("work", 1, mostTimes, true),
		Connections: f.count("connections", 1, 1, 100_000),
		Attempts:    f.count("attempts", defaultMaxAttempts, 1, 1000),
		Delay:       f.distribution("delay"),
		Loss:        f.number("loss", 0, 1, false),
	}
}

func (f *fields) fleet() Fleet {
	defer f.end()
	fleet := Fleet{
		Name:    f.name("name"),
		Clients: f.count("clients", 1, 1, mostClients),
		Rate:    f.number("rate", 0, mostRate, true),
		Think:   f.distribution("think"),
	}
	switch {
	case f.has("rate") == f.has("think"):
		f.wrong("rate", "must be the calls per second of all clients together; or think, how long each waits between its calls, and not both")
	case f.has("think") && (fleet.Think == nil || fleet.Think.Mean() <= 0):
		f.wrong("think", "must be more than 0s on average")
	}
	for _, in := range f.oneOrMore("calls") {
		c := in.call()
		c.Share = in.number("share", 1, 1e6, true)
		fleet.Calls = append(fleet.Calls, c)
		if !in.has("deadline") {
			in.wrong("deadline", `must be a time such as "1s": who waits forever says nothing of retries`)
		}
		in.end()
	}
	if len(fleet.Calls) == 0 {
		f.wrong("calls", "must say which service is called, with which deadline")
	}
	return fleet
}

// distribution is how long something takes: "20ms", or an object with one shape.
func (f *fields) distribution(key string) *Distribution {
	const want = `must be a time such as "20ms", or one of fixed, exponential, uniform, normal, lognormal and bimodal`
	n := f.get(key)
	switch {
	case n == nil:
		return nil
	case n.Kind != document.Object:
		return &Distribution{A: f.duration(key, 0, 0, longestTime)}
	}
	in := f.object(f.under(key), n)
	if in == nil {
		return nil
	}
	defer in.end()
	if len(in.node.Entries) != 1 {
		f.wrong(key, want)
	}
	d := &Distribution{}
	switch {
	case in.has("fixed"):
		d.A = in.duration("fixed", 0, 0, longestTime)
	case in.has("exponential"):
		d.Shape, d.A = ShapeExponential, in.duration("exponential", 0, 0, longestTime)
	case in.has("uniform"):
		d.Shape = ShapeUniform
		d.A, d.B = in.pair("uniform", "from", "to")
		in.ordered("uniform", "to", d.A <= d.B, "from")
	case in.has("normal"):
		d.Shape = ShapeNormal
		d.A, d.B = in.pair("normal", "mean", "deviation")
	case in.has("lognormal"):
		d.Shape = ShapeLogNormal
		d.A, d.B = in.pair("lognormal", "median", "p99")
		in.ordered("lognormal", "p99", d.A > 0 && d.A <= d.B, "median, which must be more than 0s")
	case in.has("bimodal"):
		d = in.bimodal("bimodal")
	default:
		f.Skip(f.under(key))
	}
	return d
}

// bimodal is a time of which a part comes from another distribution.
func (f *fields) bimodal(key string) *Distribution {
	in := f.inside(key)
	if in == nil {
		return nil
	}
	defer in.end()
	for _, k := range []string{"usual", "slow", "part"} {
		if !in.has(k) {
			in.wrong(k, "a bimodal time is {usual: 10ms, slow: 200ms, part: 0.2}")
		}
	}
	d := &Distribution{Shape: ShapeBimodal, Usual: in.distribution("usual"), Slow: in.distribution("slow"), Part: in.number("part", 0, 1, true)}
	if d.Usual == nil || d.Slow == nil {
		return nil
	}
	return d
}

const longestTime = time.Hour

func (f *fields) pair(key, a, b string) (time.Duration, time.Duration) {
	in := f.inside(key)
	if in == nil {
		return 1, 1
	}
	defer in.end()
	for _, k := range []string{a, b} {
		if !in.has(k) {
			in.wrong(k, "must be a time")
		}
	}
	return in.duration(a, 1, 0, longestTime), in.duration(b, 1, 0, longestTime)
}

func (f *fields) ordered(key, b string, ok bool, a string) {
	if !ok {
		f.wrong(key, "%s must be at least %s", b, a)
	}
}

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
	if n := f.value("set", document.Object, "keys of a policy's methodConfig entries, such as {admission: REFUSE}"); n != nil {
		if text, ok := n.JSON(f.Report, f.under("set")); ok {
			v.Set = string(text)
		}
	}
	if f.has("guard") {
		v.Guard = new(f.flag("guard", true))
	}
	v.Blind = f.flag("blind", false)
	return v
}
