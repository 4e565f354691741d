// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const planted = `package planted

import "io"

type a struct{}
type b struct{ other a }
type c struct{ a }
type d struct{}

func (a) three() {}
func (b) three() {}
func (c) three() {}

func (a) two() {}
func (b) two() {}

// One meaning, since all of them are shapes.
type shape interface{ draw(n int) }

func (a) draw(n int) {}
func (b) draw(n int) {}
func (d) draw(n int) {}

// The half of an implementation has the meaning of the whole, which e is.
type whole interface{ up(); down() }
type e struct{ half }
type half struct{}
type full struct{}

func (half) down() {}
func (full) down() {}
func (full) up() {}
func (e) up() {}
func (d) down() {}

// b has none of its own.
func (a) pass() int { return 1 }
func (b) pass() int { return b{}.other.pass() }
func (d) pass() int { return 2 }

// Those of the standard library don't count.
func (a) Close() error { return nil }
func (b) Close() {}
func (c) Close(now bool) {}
func (a) WriteString(s string) (int, error) { return 0, nil }
func (b) WriteString() {}
func (d) WriteString(n int) {}

var _ io.StringWriter = a{}
`

func TestAmbiguous(t *testing.T) {
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module planted\n\ngo 1.26.0\n", "planted.go": planted} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := ambiguous(dir, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(found)); !slices.Equal(names, []string{"three"}) || len(found["three"]) != 3 {
		t.Errorf("found %v; want the three meanings of three", found)
	}
}
