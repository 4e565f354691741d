// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure compares what operations cost on a machine that does other things as well: in many short
// rounds, each of which has every subject once, in an order of chance. What else the machine does then falls
// on all alike, and medians of the ratios within rounds hold where times do not.
package measure

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Subject is one of those that are compared.
type Subject struct {
	Name string
	Run  func(n int) error // carries out n operations, n > 0
}

func (s Subject) run(n int) error {
	if err := s.Run(n); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

// Plan says how subjects are compared.
type Plan struct {
	Sessions int           // at least 1: for each, the subjects are opened anew
	Rounds   int           // of a session, at least 1
	Slice    time.Duration // about how long a subject runs in a round; positive
	Seed     uint64        // of the order in each round
	Base     int           // the subject whose time the others' are divided by
	Meter    Meter         // nil: of this process
}

// Open makes the subjects of a session: always the same ones in the same order. A connection can be slow
// for as long as it lives; a new one seldom is too. It ends before the
// next begins, and what it measured counts for nothing if that fails.
type Open func() (subjects []Subject, end func() error, err error)

// Compare measures all subjects in turns, one at a time. The costs stand in the order of the subjects. It
// ends with the first error of a subject.
func Compare(p Plan, open Open) ([]Cost, error) {
	switch {
	case p.Sessions < 1 || p.Rounds < 1:
		return nil, fmt.Errorf("%d sessions of %d rounds: at least 1 of 1 is needed", p.Sessions, p.Rounds)
	case p.Slice <= 0:
		return nil, fmt.Errorf("a slice of %v: it must be positive", p.Slice)
	}
	if p.Meter == nil {
		p.Meter = Process()
	}
	order := rand.New(rand.NewPCG(p.Seed, 2))
	var all []series
	for range p.Sessions {
		var err error
		if all, err = p.sit(open, all, order); err != nil {
			return nil, err
		}
	}
	costs := make([]Cost, len(all))
	for i, s := range all {
		costs[i] = s.cost(all[p.Base])
	}
	return costs, nil
}

// sit adds a session to what was measured in those before it.
func (p Plan) sit(open Open, all []series, order *rand.Rand) (_ []series, err error) {
	subjects, end, err := open()
	if err != nil {
		return nil, err
	}
	defer func() {
		if ended := end(); err == nil {
			err = ended
		}
	}()
	if p.Base < 0 || p.Base >= len(subjects) {
		return nil, fmt.Errorf("base %d of %d subjects: the first is 0", p.Base, len(subjects))
	}
	if all == nil {
		all = make([]series, len(subjects))
	}
	for i, s := range subjects {
		if err := p.calibrate(s, &all[i]); err != nil {
			return nil, err
		}
	}
	for range p.Rounds {
		for _, i := range order.Perm(len(subjects)) {
			if err := p.measure(subjects[i], &all[i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// measure runs a subject for a slice.
func (p Plan) measure(s Subject, to *series) error {
	p.Meter.Settle()
	allocs, bytes := p.Meter.Allocated()
	spent, began := p.Meter.Processor(), p.Meter.Now()
	err := s.run(to.count)
	took := p.Meter.Now() - began
	spent = p.Meter.Processor() - spent
	allocs2, bytes2 := p.Meter.Allocated()
	if err != nil {
		return err
	}
	n := float64(to.count)
	to.times = append(to.times, float64(took)/n)
	to.spent = append(to.spent, float64(spent)/n)
	to.allocs = append(to.allocs, float64(allocs2-allocs)/n)
	to.bytes = append(to.bytes, float64(bytes2-bytes)/n)
	return nil
}
