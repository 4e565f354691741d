// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// writeResults writes the results of a build, for a comparison with another.
func writeResults(path string, list []*judged) error {
	data, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// readResults reads the results of another build.
func readResults(path string) (list []*judged, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: want what -out has written: %w", path, err)
	}
	return list, nil
}

// compared compares a player with itself in another build.
type compared struct {
	scenarios            int
	over05, over1, over3 int // lose more than this many points against the other build
	up1                  int // gain more than a point
	low, lowOver05       int // scenarios where the load
	gain, gainBefore     float64
}

// against compares the scenarios that both builds have played.
func against(before, now []*judged, name string) compared {
	type key struct {
		seed  uint64
		index int
		words string // another generator draws different ones
	}
	known := map[key]*judged{}
	for _, j := range before {
		known[key{j.Seed, j.Index, j.Words}] = j
	}
	var c compared
	for _, cur := range now {
		old := known[key{cur.Seed, cur.Index, cur.Words}]
		if old == nil {
			continue
		}
		c.scenarios++
		var loss float64
		n := min(len(old.Players[name]), len(cur.Players[name]))
		for s := range n {
			loss += (old.Players[name][s].Success - cur.Players[name][s].Success) / float64(n)
		}
		c.over05 += one(loss > 0.005)
		c.over1 += one(loss > 0.01)
		c.over3 += one(loss > 0.03)
		c.up1 += one(loss < -0.01)
		c.low += one(cur.LowLoad)
		c.lowOver05 += one(cur.LowLoad && loss > 0.005)
		c.gain += cur.Players[name][0].Success - cur.Players[noRetries][0].Success
		c.gainBefore += old.Players[name][0].Success - old.Players[noRetries][0].Success
	}
	c.gain /= float64(max(c.scenarios, 1))
	c.gainBefore /= float64(max(c.scenarios, 1))
	return c
}

// compare writes how each player compares with the other build.
func compare(out io.Writer, before, now []*judged) {
	fmt.Fprintf(out, "\nAgainst the build before:\n")
	for _, p := range players[1:] {
		c := against(before, now, p.name)
		fmt.Fprintf(out, "%-20s %d scenarios: %d lose more than half a point, %d more than 1, %d more than 3; %d gain more than 1; mean gain %+.2f, before %+.2f\n",
			p.name, c.scenarios, c.over05, c.over1, c.over3, c.up1, 100*c.gain, 100*c.gainBefore)
		fmt.Fprintf(out, "%-20s load below %v: %d of %d lose at most half a point (%.1f %%)\n", "", lowLoad, c.low-c.lowOver05, c.low,
			100*float64(c.low-c.lowOver05)/float64(max(c.low, 1)))
	}
}
