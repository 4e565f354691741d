// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
)

// subject is one of the things to compare.
type subject struct {
	name  string
	run   func(n int) error // carries out n operations
	count int               // operations of a round

	times, spent, allocs, bytes []float64 // per operation, by round
}

// cost is the cost of one operation: medians of the rounds.
type cost struct {
	ratio, processor     float64 // of times, and of processor times, to the base in the same round; 0: too short to tell
	nanos, allocs, bytes float64
}

// meter reads the resources used so far.
type meter interface {
	now() time.Duration
	processor() time.Duration // of all processors together
	allocated() (objects, bytes uint64)
}

// plan configures a comparison.
type plan struct {
	rounds int
	slice  time.Duration // approximate time of a subject in a round
	meter  meter
}

// compare measures the subjects in turns: each once per round, in random order. Other load on the machine then affects all
// alike, and ratios within rounds are valid even if times are not. Garbage is collected between rounds only: a collection would
// charge one subject for what another has left.
func (p plan) compare(subjects []*subject, base int) ([]cost, error) {
	for _, s := range subjects {
		if err := p.calibrate(s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range p.rounds {
		runtime.GC()
		for _, i := range rand.Perm(len(subjects)) {
			if err := p.measure(subjects[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", subjects[i].name, err)
			}
		}
	}
	costs := make([]cost, len(subjects))
	for i, s := range subjects {
		costs[i] = cost{
			ratio: ratio(s.times, subjects[base].times), processor: ratio(s.spent, subjects[base].spent),
			nanos: quartilesOf(s.times).median, allocs: quartilesOf(s.allocs).median, bytes: quartilesOf(s.bytes).median,
		}
	}
	return costs, nil
}

// calibrate finds how many operations fill a slice. The first call connects. A disturbance must not make the number too
// small: only the fastest of three runs counts.
func (p plan) calibrate(s *subject) error {
	if err := s.run(1); err != nil {
		return err
	}
	for s.count = 1; ; s.count *= 2 {
		took := time.Duration(math.MaxInt64)
		for try := 0; try < 3 && took >= p.slice/2; try++ {
			began := p.meter.now()
			if err := s.run(s.count); err != nil {
				return err
			}
			took = min(took, p.meter.now()-began)
		}
		if took >= p.slice/2 {
			s.count = max(1, int(float64(s.count)*float64(p.slice)/float64(took)))
			return nil
		}
	}
}

// measure runs a subject for a slice.
func (p plan) measure(s *subject) error {
	objects, bytes := p.meter.allocated()
	spent, began := p.meter.processor(), p.meter.now()
	err := s.run(s.count)
	took := p.meter.now() - began
	spent = p.meter.processor() - spent
	objects2, bytes2 := p.meter.allocated()
	n := float64(s.count)
	s.times = append(s.times, float64(took)/n)
	s.spent = append(s.spent, float64(spent)/n)
	s.allocs = append(s.allocs, float64(objects2-objects)/n)
	s.bytes = append(s.bytes, float64(bytes2-bytes)/n)
	return err
}

// ratio returns the median of the rounds' ratios; 0 if a round of the base was too short to measure.
func ratio(all, base []float64) float64 {
	list := make([]float64, len(all))
	for i := range list {
		if base[i] == 0 {
			return 0
		}
		list[i] = all[i] / base[i]
	}
	return quartilesOf(list).median
}

// quartiles are the 25 %, 50 % and 75 % quantiles.
type quartiles struct{ low, median, high float64 }

// quartilesOf interpolates between values, of which there must be at least one.
func quartilesOf(values []float64) quartiles {
	sorted := slices.Sorted(slices.Values(values))
	at := func(part float64) float64 {
		whole, rest := math.Modf(part * float64(len(sorted)-1))
		i := int(whole)
		return sorted[i] + rest*(sorted[min(i+1, len(sorted)-1)]-sorted[i])
	}
	return quartiles{at(0.25), at(0.5), at(0.75)}
}

// process is the meter of this process.
type process struct{ began time.Time }

func (p process) now() time.Duration { return time.Since(p.began) }

func (process) allocated() (objects, bytes uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs, m.TotalAlloc
}
