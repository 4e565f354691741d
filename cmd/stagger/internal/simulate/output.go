// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/tools/report"
)

// write writes what was found in the form that is wished for, to the file or to standard output.
func (o *options) write(out io.Writer, text func(io.Writer), data func() any, page func() *report.Report) (err error) {
	if o.output != "" {
		f, err := os.Create(o.output)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	switch o.format {
	case "json":
		err = cli.WriteJSON(out, data())
	case "csv":
		err = page().WriteCSV(out)
	case "html":
		err = page().WriteHTML(out)
	default:
		kept := &keeper{to: out}
		text(kept)
		err = kept.err
	}
	if err != nil {
		return fmt.Errorf("the result could not be written: %w", err)
	}
	return nil
}

// keeper keeps the first error of a writer.
type keeper struct {
	to  io.Writer
	err error
}

func (k *keeper) Write(b []byte) (int, error) {
	if k.err == nil {
		_, k.err = k.to.Write(b)
	}
	return len(b), nil
}
