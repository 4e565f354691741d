// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"path/filepath"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

// language is a language with a client for these tests.
type language struct {
	name    string
	command []string // to run a program; its file follows
	client  string
}

var languages = []language{
	{"Python", []string{"/usr/bin/python3"}, "python/client.py"},
	{"Node", []string{"node"}, "node/client.js"},
}

// uses records the versions of the language and of its gRPC.
func (l language) uses(t *testing.T) {
	t.Helper()
	evidence.uses(l.name, version(t, l.command[0], "--version"))
	switch l.name {
	case "Python":
		evidence.uses("grpcio (Python)", version(t, l.command[0], "-c", "import grpc; print(grpc.__version__)"))
	case "Node":
		evidence.uses("grpc-js (Node)", version(t, "grep", `"version"`, "node/node_modules/@grpc/grpc-js/package.json"))
	}
}

// program returns the full path of a program of the language.
func program(t *testing.T, path string) string {
	t.Helper()
	return testkit.Must(filepath.Abs(path))(t)
}

// service is the service of the tests.
const service = "/interop.v1.OrderService/"
