// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Vanish measures what calls cost when a server's machine vanishes: its packets are lost, and nothing closes the connection. It also
// pauses a server's process, which must lose no connection. It runs on Linux, in real time, and writes the table of
// results.md: `make vanish`.
//
// It starts itself three times. The client has a network namespace of its own, and one end of a veth pair. The servers have
// another one, with the other end. Rules of their routing drop the packets of one address.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// A process has one of these roles, which roleEnv names. The first one has none.
const (
	roleEnv     = "STAGGER_VANISH_ROLE"
	roleClient  = "client"
	roleServers = "servers"
	rolePaused  = "paused"
)

func main() {
	write := flag.Bool("write", false, "write the table into vanish/results.md")
	flag.Parse()
	var err error
	switch os.Getenv(roleEnv) {
	case roleClient:
		err = measure(*write)
	case roleServers:
		err = runServers()
	case rolePaused:
		err = runPaused()
	default:
		err = enterNamespace()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vanish:", err)
		os.Exit(1)
	}
}

// process returns this program in another role. It ends with this process.
func process(role string, namespaces uintptr) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// enterNamespace runs the measurement in a network namespace. A user who is not root becomes root in a user namespace.
func enterNamespace() error {
	cmd := process(roleClient, syscall.CLONE_NEWNET)
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("a network namespace can't be made: %w; run it as root, or allow user namespaces", err)
	}
	return cmd.Wait()
}
