// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/tools/must"
)

const sketchFile = `
methodConfig:
- name: [{service: a.B}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
- name: [{service: a.B, method: Once}]
- name: [{service: a.B, method: Get}]
  timeout: 3s
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`

// A sketch with any numbers can be read, played, and swept.
func TestSketch(t *testing.T) {
	t.Parallel()
	p := must.Get(NewPolicy(sketchFile))(t)
	rapid.Check(t, func(t *rapid.T) {
		k := Sketch{
			Policy: p, Latency: time.Duration(rapid.Int64Range(int64(100*time.Microsecond), int64(10*time.Minute)).Draw(t, "latency")),
			Workers: rapid.IntRange(1, 1000).Draw(t, "workers"), Processes: rapid.IntRange(1, 1000).Draw(t, "processes"),
		}
		capacity := float64(k.Workers) / k.Latency.Seconds()
		k.Rate = capacity * rapid.Float64Range(0.01, 0.99).Draw(t, "load")
		if k.Rate > 50_000 {
			k.Rate = 50_000
		}
		s := must.Get(k.Scenario())(t)
		text := written(t, s)
		again, err := Parse("x.yaml", []byte(text), nil)
		if err != nil && !strings.Contains(err.Error(), "too many") {
			t.Fatalf("%s\ncannot be read: %v", text, err)
		}
		if err != nil {
			return
		}
		if got, _ := again.bottleneck(); got < 0.999*capacity || got > 1.001*capacity || again.sweepable() != nil {
			t.Errorf("capacity %v; want %v", got, capacity)
		}
		if c := again.Fleets[0].Calls[0]; c.Method != "/a.B/Get" || c.Deadline != 3*time.Second {
			t.Errorf("call %+v; want the method that may be retried, with its timeout", c)
		}
	})
}

func TestSketchErrors(t *testing.T) {
	t.Parallel()
	p := must.Get(NewPolicy(sketchFile))(t)
	unsafe := must.Get(NewPolicy(strings.Replace(sketchFile, "a.B, method: Get", "a.C", 1)))(t)
	good := Sketch{Policy: p, Rate: 10, Latency: 10 * time.Millisecond, Workers: 1, Processes: 1}
	for want, change := range map[string]func(*Sketch){
		"must each be more than 0": func(k *Sketch) { k.Processes = 0 },
		"100 calls per second: must be less than the 100 that 1 workers with 10ms for each serve": func(k *Sketch) { k.Rate = 100 },
		"no entry of the policy makes": func(k *Sketch) { k.Policy = unsafe },
	} {
		k := good
		change(&k)
		if _, err := k.Scenario(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	good.Policy, good.Method = unsafe, "/a.B/X"
	if s, err := good.Scenario(); err != nil || s.Fleets[0].Calls[0].Method != "/a.B/X" {
		t.Errorf("error %v; want the method that was named", err)
	}
}
