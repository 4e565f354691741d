// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"cmp"
	"os"
	"path/filepath"
	"time"
)

// process has the page's data about the program.
type process struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"` // when this package was initialized
}

var thisProcess = newProcess()

func newProcess() process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name := ""
	if len(os.Args) > 0 {
		name = filepath.Base(os.Args[0])
	}
	return process{Name: cmp.Or(name, "unnamed"), Host: host, PID: os.Getpid(), Started: time.Now().UTC()}
}
