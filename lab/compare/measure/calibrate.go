// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// calibrate finds how many operations fill a slice, once. A moment in which the machine does something else
// must not make that too few: then what the first operation after a pause costs would be all that is seen.
func (p Plan) calibrate(s Subject, to *series) error {
	if err := s.run(max(1, to.count)); err != nil || to.count > 0 { // warms up: a connection is made by the first call
		return err
	}
	const most = 1 << 30
	for count := 1; ; count = min(most, 2*count) {
		took, err := p.shortest(s, count)
		if err != nil {
			return err
		}
		if took >= p.Slice/2 || count == most {
			fitting := float64(count) * float64(p.Slice) / float64(max(took, 1))
			to.name, to.count = s.Name, int(min(most, max(1, fitting)))
			return nil
		}
	}
}

// shortest is the shortest time of three that so many operations take; one that is short enough will do.
func (p Plan) shortest(s Subject, count int) (shortest time.Duration, err error) {
	for try := range 3 {
		began := p.Meter.Now()
		if err := s.run(count); err != nil {
			return 0, err
		}
		took := p.Meter.Now() - began
		if shortest = min(shortest, took); try == 0 {
			shortest = took
		}
		if shortest < p.Slice/2 {
			break
		}
	}
	return shortest, nil
}
