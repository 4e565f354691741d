// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"
)

func TestResponses(t *testing.T) {
	t.Parallel()
	type response struct {
		long bool
		at   time.Duration
	}
	for name, row := range map[string]struct {
		responses  []response
		now        time.Duration
		fast, long int
	}{
		"none":                             {nil, 0, 0, 0},
		"both kinds":                       {[]response{{false, 0}, {true, 1}}, 1, 1, 1},
		"five are remembered":              {[]response{{true, 0}, {false, 1 * time.Second}, {false, 2 * time.Second}, {false, 3 * time.Second}, {false, 4 * time.Second}, {false, 5 * time.Second}}, 5 * time.Second, 5, 0},
		"a burst of fast ones counts once": {[]response{{true, 0}, {false, 1}, {false, 50 * ms}, {false, 99 * ms}}, 99 * ms, 1, 1},
		"one in a tenth of a second":       {[]response{{false, 0}, {false, 100 * ms}, {false, 150 * ms}, {false, 200 * ms}}, 200 * ms, 3, 0},
		"each long one counts":             {[]response{{true, 0}, {true, 1}, {true, 2}}, 2, 0, 3},
		"a fast one after a long one":      {[]response{{false, 0}, {true, 1}, {false, 2}}, 2, 2, 1},
		"for ten seconds":                  {[]response{{true, 0}, {false, 5 * time.Second}}, 10 * time.Second, 1, 1},
		"and not longer":                   {[]response{{true, 0}, {false, 5 * time.Second}}, 10*time.Second + 1, 1, 0},
		"before the zero of the clock":     {[]response{{true, -time.Hour}, {true, -time.Hour + 1}}, -time.Hour + 2, 0, 2},
	} {
		var r Responses
		for _, response := range row.responses {
			r.Record(response.long, response.at)
		}
		if fast, long := r.Counts(row.now); fast != row.fast || long != row.long {
			t.Errorf("%s: %d fast, %d long; want %d, %d", name, fast, long, row.fast, row.long)
		}
	}
}
