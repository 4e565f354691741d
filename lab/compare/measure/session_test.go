// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSittings(t *testing.T) {
	t.Parallel()
	m, log := new(still), []string{}
	_, err := Compare(m.plan(2, 1), func() ([]Subject, func() error, error) {
		log = append(log, "open")
		return []Subject{m.takes("a", time.Millisecond, &log)}, func() error { log = append(log, "end"); return nil }, nil
	})
	if got := strings.Join(log, " "); err != nil || got != "open a×1 a×1 a×1 a×1 a×1 end open a×1 a×1 end" {
		t.Errorf("%v: %s", err, got)
	}
}

var errBad = errors.New("bad")

func TestSittingErrors(t *testing.T) {
	t.Parallel()
	m := new(still)
	fine := m.takes("fine", time.Millisecond, nil)
	broken := Subject{"broken", func(int) error { return errBad }}
	runs := 0
	late := Subject{"late", func(int) error {
		if runs++; runs == 6 {
			return errBad
		}
		m.now += time.Millisecond
		return nil
	}}
	for want, open := range map[string]Open{
		"broken: bad": always(fine, broken),
		"late: bad":   always(fine, late),
		"bad":         func() ([]Subject, func() error, error) { return nil, nil, errBad },
		"bad ":        func() ([]Subject, func() error, error) { return []Subject{fine}, func() error { return errBad }, nil },
	} {
		if costs, err := Compare(m.plan(2, 5), open); costs != nil || !errors.Is(err, errBad) || err.Error() != strings.TrimSpace(want) {
			t.Errorf("%v, %v; want %s", costs, err, want)
		}
	}
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	m := new(still)
	for want, change := range map[string]func(*Plan){
		"0 sessions":          func(p *Plan) { p.Sessions = 0 },
		"of -1 rounds":        func(p *Plan) { p.Rounds = -1 },
		"a slice of 0s":       func(p *Plan) { p.Slice = 0 },
		"base 1 of 1 subject": func(p *Plan) { p.Base = 1 },
		"base -1 of 1":        func(p *Plan) { p.Base = -1 },
	} {
		p := m.plan(1, 1)
		change(&p)
		if _, err := Compare(p, always(m.takes("a", 1, nil))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
