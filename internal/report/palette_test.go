// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"testing"
)

// brightness is the relative luminance of WCAG 2.
func brightness(hex string) float64 {
	r, g, b, _ := rgb(hex).RGBA()
	part := func(v uint32) float64 {
		c := float64(v) / 0xffff
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(r) + 0.7152*part(g) + 0.0722*part(b)
}

func contrast(a, b string) float64 {
	x, y := brightness(a), brightness(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestPaletteContrast(t *testing.T) {
	t.Parallel()
	if got := contrast("#ffffff", "#000000"); math.Abs(got-21) > 1e-9 {
		t.Fatalf("white and black: %v; want 21", got)
	}
	for _, h := range hues {
		if got := contrast(h.light, "#f6f8fa"); got < 3 { // --panel in page.css
			t.Errorf("%s on light ground: contrast %.2f; want at least 3", h.light, got)
		}
		if got := contrast(h.dark, "#1a2028"); got < 3 {
			t.Errorf("%s on dark ground: contrast %.2f; want at least 3", h.dark, got)
		}
	}
}

func TestPaletteDiffers(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i := range 35 {
		looks := fmt.Sprint(seriesHue(i), seriesDashes(i))
		if k, ok := seen[looks]; ok {
			t.Errorf("series %d and %d both look like %s", k, i, looks)
		}
		seen[looks] = i
	}
}
