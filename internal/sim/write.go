// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
)

// Write writes the scenario as a file that [Parse] reads as the same scenario, without keys that say what holds anyway. Policy
// files are named as they were; a policy that has neither a file nor a text is an error.
func (s *Scenario) Write(w io.Writer) error {
	n, err := s.node()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, n.YAML())
	return err
}

func (s *Scenario) node() (*document.Node, error) {
	policies, err := s.policyNodes()
	if err != nil {
		return nil, err
	}
	o := object{}
	o.text("title", s.Title)
	o.text("about", s.About)
	o.count("seed", int(max(s.Seed, 1)), 1)
	if s.Bucket != s.bucket() {
		o.time("bucket", s.Bucket)
	}
	if r := cmp.Or(s.Recovery, defaultRecovery); r != defaultRecovery {
		in := object{}
		in.number("success", r.Success, defaultRecovery.Success)
		in.time("window", r.Window)
		o.put("recovery", in.node())
	}
	o.put("policies", policies)
	o.put("services", list(s.Services, serviceNode))
	o.put("fleets", list(s.Fleets, fleetNode))
	variants, err := s.variantNodes()
	o.put("variants", variants)
	o.put("phases", phaseNodes(s.Phases))
	return o.node(), err
}

// policyNodes are in the order of their names.
func (s *Scenario) policyNodes() (*document.Node, error) {
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(s.Policies)) {
		p := s.Policies[name]
		switch {
		case p.File != "":
			o.text(name, p.File)
		default:
			n, err := parseNode(p.Text)
			if err != nil {
				return nil, fmt.Errorf("sim: policy %q cannot be written: %w", name, err)
			}
			o.put(name, n)
		}
	}
	return o.node(), nil
}

// parseNode reads an object in YAML or JSON.
func parseNode(text string) (*document.Node, error) {
	report := document.NewReport("")
	n := document.Parse(report, []byte(text), document.Format{Name: "text", MayLack: true})
	return n, report.Err()
}

func serviceNode(s *Service) *document.Node {
	o := object{}
	o.text("name", s.Name)
	o.count("backends", s.Backends, 1)
	o.count("workers", s.Workers, 1)
	o.distribution("time", s.Time)
	o.count("queue", s.Queue, 0)
	if s.Order == OrderLIFO {
		o.text("order", "LIFO")
	}
	o.code("refuse", s.Refuse, codes.ResourceExhausted)
	if s.Abandoned == AbandonedDrop {
		o.text("abandoned", "DROP")
	}
	o.flag("reportsUtilization", s.Reports, false)
	o.flag("guard", s.Guard, true)
	o.put("calls", list(s.Calls, callNode))
	return o.node()
}

func fleetNode(f *Fleet) *document.Node {
	o := object{}
	o.text("name", f.Name)
	o.count("clients", max(f.Clients, 1), 1)
	o.number("rate", f.Rate, 0)
	o.distribution("think", f.Think)
	if len(f.Calls) == 1 {
		o.put("calls", callNode(&f.Calls[0]))
	} else {
		o.put("calls", list(f.Calls, callNode))
	}
	return o.node()
}

func callNode(c *Call) *document.Node {
	o := object{}
	o.text("service", c.Service)
	o.text("method", c.Method)
	o.text("policy", c.Policy)
	o.time("deadline", c.Deadline)
	o.number("share", cmp.Or(c.Share, 1), 1)
	o.number("work", cmp.Or(c.Work, 1), 1)
	o.count("connections", c.connections(), 1)
	o.count("clients", c.Clients, 0)
	o.count("attempts", c.Attempts, 0)
	o.distribution("delay", c.Delay)
	o.number("loss", c.Loss, 0)
	return o.node()
}

func (s *Scenario) variantNodes() (*document.Node, error) {
	nodes := make([]*document.Node, 0, len(s.Variants))
	for i := range s.Variants {
		v := &s.Variants[i]
		o := object{}
		o.text("name", v.Name)
		o.text("policy", v.All)
		policies := object{}
		for _, name := range slices.Sorted(maps.Keys(v.Policies)) {
			policies.text(name, v.Policies[name])
		}
		o.put("policies", policies.node())
		if v.Set != "" {
			n, err := parseNode(v.Set)
			if err != nil {
				return nil, fmt.Errorf("sim: set of the variant %q cannot be written: %w", v.Name, err)
			}
			o.put("set", n)
		}
		o.count("clients", v.Clients, 0)
		o.flag("blind", v.Blind, false)
		if v.Guard != nil {
			o.flag("guard", *v.Guard, !*v.Guard)
		}
		nodes = append(nodes, o.node())
	}
	return nodeList(nodes), nil
}

// phaseNodes writes phases that repeat as a group.
func phaseNodes(phases []Phase) *document.Node {
	nodes := make([]*document.Node, len(phases))
	texts := make([]string, len(phases))
	for i := range phases {
		nodes[i] = phaseNode(&phases[i])
		texts[i] = nodes[i].YAML()
	}
	var grouped []*document.Node
	for i := 0; i < len(nodes); {
		size, times := repeated(texts[i:])
		if times == 1 {
			grouped = append(grouped, nodes[i])
		} else {
			o := object{}
			o.count("repeat", times, 0)
			o.put("phases", nodeList(nodes[i:i+size]))
			grouped = append(grouped, o.node())
		}
		i += size * times
	}
	return nodeList(grouped)
}

// repeated is how many of the first texts follow each other how often: of all groups, the one that covers most.
func repeated(texts []string) (size, times int) {
	size, times = 1, 1
	for n := 1; n <= min(len(texts)/2, 8); n++ {
		same := n
		for same < len(texts) && texts[same] == texts[same-n] {
			same++
		}
		if again := same / n; again > 1 && again*n > size*times {
			size, times = n, again
		}
	}
	return size, times
}

func phaseNode(p *Phase) *document.Node {
	o := object{}
	o.text("name", p.Name)
	switch p.Kind {
	case KindLead:
		o.text("kind", "LEAD")
	case KindAfter:
		o.text("kind", "AFTER")
	case KindTrouble:
	}
	o.time("length", p.Length)
	if p.LoadTo != nil {
		in := object{}
		in.number("from", p.Load, -1)
		in.number("to", *p.LoadTo, -1)
		o.put("load", in.node())
	} else {
		o.number("load", p.Load, 1)
	}
	o.put("faults", list(p.Faults, faultNode))
	return o.node()
}

func faultNode(f *Fault) *document.Node {
	o := object{}
	o.text("service", f.Service)
	backends := make([]*document.Node, len(f.Backends))
	for i, b := range f.Backends {
		backends[i] = numberNode(float64(b))
	}
	o.put("backends", nodeList(backends))
	o.flag("down", f.Down, false)
	o.flag("hang", f.Hang, false)
	o.number("flaky", f.Flaky, 0)
	if f.Slow != nil {
		in := object{}
		in.number("part", f.Slow.Part, 0)
		in.distribution("by", f.Slow.By)
		o.put("slow", in.node())
	}
	o.number("slower", f.Slower, 0)
	if f.Workers != nil {
		o.count("workers", *f.Workers, -1)
	}
	o.code("code", f.Code, codes.Unavailable)
	switch {
	case f.Pushback == nil:
	case *f.Pushback < 0:
		o.text("pushback", "STOP")
	default:
		o.put("pushback", textNode(f.Pushback.String()))
	}
	return o.node()
}

func distributionNode(d *Distribution) *document.Node {
	pair := func(shape, a, b string) *document.Node {
		o, in := object{}, object{}
		in.put(a, textNode(d.A.String()))
		in.put(b, textNode(d.B.String()))
		o.put(shape, in.node())
		return o.node()
	}
	o := object{}
	switch d.Shape {
	case ShapeExponential:
		o.put("exponential", textNode(d.A.String()))
	case ShapeUniform:
		return pair("uniform", "from", "to")
	case ShapeNormal:
		return pair("normal", "mean", "deviation")
	case ShapeLogNormal:
		return pair("lognormal", "median", "p99")
	case ShapeBimodal:
		in := object{}
		in.distribution("usual", d.Usual)
		in.distribution("slow", d.Slow)
		in.number("part", d.Part, 0)
		o.put("bimodal", in.node())
	case ShapeFixed:
		return textNode(d.A.String())
	}
	return o.node()
}

// defaultRecovery is that of a file which names none.
var defaultRecovery = Recovery{Success: 0.99, Window: 250 * time.Millisecond}
