// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package proof_test searches for errors: it plays random scripts of a server and an application, over the public API only
// and in virtual time. It compares the application's view with that of gRPC itself, or with rules that hold for every call.
//
// A script is made from bytes. After their end, every choice is the simplest. So the same code reads the bytes of a seed, and of
// a script that is being minimized.
package proof_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// again plays one script, in the form that a failed test prints. many makes the search longer, and seed selects another one.
var again = flag.String("script", "", "play this script alone, in hexadecimal")

// many makes the search longer, and seed another one.
var (
	many = flag.Int("many", 1, "how many `times` as many scripts to play")
	seed = flag.Uint64("seed", 0, "play other scripts than those of seed 0")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// draws are choices, made from bytes.
type draws struct{ left []byte }

// below returns a number from 0, the simplest, to n-1.
func (d *draws) below(n int) int {
	if len(d.left) == 0 {
		return 0
	}
	b := int(d.left[0])
	d.left = d.left[1:]
	return b % n
}

// odds returns true in about this percentage of cases.
func (d *draws) odds(percent int) bool { return d.below(100) >= 100-percent }

// one returns one of the values; the first is the simplest.
func one[T any](d *draws, list ...T) T { return list[d.below(len(list))] }

// search plays random scripts. If play finds an error, it reports the smallest script with an error.
func search(t *testing.T, scripts, size int, play func(t *testing.T, d *draws) string) {
	t.Helper()
	if *again != "" {
		data, err := hex.DecodeString(*again)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for i := 0; i < 50 && found == ""; i++ { // the order of goroutines varies
			found = watched(t, data, play)
		}
		if found != "" {
			t.Fatal(found)
		}
		return
	}
	for i := range scripts * *many {
		random := rand.New(rand.NewPCG(uint64(i), *seed))
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		judge(t, data, play)
	}
}

// judge plays one script and, if that has an error, reports the smallest one that has.
func judge(t *testing.T, data []byte, play func(t *testing.T, d *draws) string) {
	t.Helper()
	found := watched(t, data, play)
	if found == "" {
		return
	}
	data = smaller(data, func(data []byte) bool {
		text := watched(t, data, play)
		if text != "" {
			found = text // another play may find nothing: the order of goroutines varies
		}
		return text != ""
	})
	t.Fatalf("%s\nagain: go test ./lab/proof -run '^%s$' -script %s", found, t.Name(), hex.EncodeToString(data))
}

// watched plays one script, with a time limit: a bubble that spins would never end.
func watched(t *testing.T, data []byte, play func(t *testing.T, d *draws) string) string {
	t.Helper()
	watch := time.AfterFunc(30*time.Second, func() { debug.SetTraceback("all"); panic("a script does not end: " + hex.EncodeToString(data)) })
	defer watch.Stop()
	return play(t, &draws{data})
}

// described returns the error that f finds, with the script. That includes the panic of a bubble that cannot end.
func described(script fmt.Stringer, f func() string) (found string) {
	defer func() {
		if p := recover(); p != nil {
			found = fmt.Sprint("panic: ", p)
			if *again != "" {
				stacks := make([]byte, 1<<20)
				found += "\n" + string(stacks[:runtime.Stack(stacks, true)])
			}
		}
		if found != "" {
			found += "\n" + script.String()
		}
	}()
	return f()
}

// smaller returns the smallest script that still fails, after some hundred plays.
func smaller(data []byte, fails func([]byte) bool) []byte {
	left := 400
	try := func(candidate []byte) bool {
		left--
		if left < 0 || !fails(candidate) {
			return false
		}
		data = candidate
		return true
	}
	for before := []byte(nil); !slices.Equal(before, data) && left > 0; {
		before = data
		for n := len(data) / 2; n > 0; n /= 2 {
			for i := 0; i+n <= len(data); {
				if !try(slices.Concat(data[:i], data[i+n:])) {
					i += n
				}
			}
		}
		for i := range data {
			for _, b := range []byte{0, data[i] / 2, data[i] - 1} {
				candidate := slices.Clone(data)
				candidate[i] = b
				if b < data[i] && try(candidate) {
					break
				}
			}
		}
	}
	return data
}
