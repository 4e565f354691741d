// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeWorst shrinks the worst scenarios of a player, and writes a file for each into a folder.
func writeWorst(ctx context.Context, out io.Writer, folder string, list []*judged, player string, n int) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	for _, j := range worst(list, player, n) {
		s, err := j.drawn.shrink(ctx, player)
		if err != nil {
			return fmt.Errorf("scenario %d: %w", j.Index, err)
		}
		s.Scenario.Title = fmt.Sprintf("scenario %d of seed %d, shrunk", j.Index, j.Seed)
		s.Scenario.About = fmt.Sprintf("%s: %.0f points worse than no retries; drawn: %s", player, 100*s.Loss, j.Words)
		path := filepath.Join(folder, fmt.Sprintf("%d-%d.yaml", j.Seed, j.Index))
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		err = s.Scenario.Write(f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %.0f points worse, %d processes, %d phases\n", path, 100*s.Loss, s.Scenario.Fleets[0].Clients, len(s.Scenario.Phases))
	}
	return nil
}
