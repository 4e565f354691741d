// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// The veth pair, and the addresses at its ends.
const (
	clientLink    = "vanish0"
	serverLink    = "vanish1"
	clientMAC     = "02:00:00:00:00:01"
	serverMAC     = "02:00:00:00:00:11"
	clientAddress = "10.77.0.1"
	vanishing     = "10.77.0.11"
	pausing       = "10.77.0.14"
	briefly       = "10.77.0.15"
	longer        = "10.77.0.16"
	port          = "50051"
)

var (
	backends  = []string{vanishing, "10.77.0.12", "10.77.0.13"} // one of them vanishes
	addresses = append([]string{pausing, briefly, longer}, backends...)
)

// ip runs commands of iproute2.
func ip(lines ...string) error {
	for _, line := range lines {
		if out, err := exec.CommandContext(context.Background(), "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s; it needs Linux, iproute2, and root or a user namespace", line, err, out)
		}
	}
	return nil
}

// connectClient makes the veth pair, and gives the other end to the namespace of a process. The link-layer addresses are
// fixed, as those of routers: they do not vanish with a machine behind one.
func connectClient(pid int) error {
	err := ip(
		"link set lo up",
		"link add "+clientLink+" address "+clientMAC+" type veth peer name "+serverLink+" address "+serverMAC,
		fmt.Sprintf("link set %s netns %d", serverLink, pid),
		"addr add "+clientAddress+"/24 dev "+clientLink,
		"link set "+clientLink+" up",
	)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := ip("neigh replace " + a + " lladdr " + serverMAC + " dev " + clientLink + " nud permanent"); err != nil {
			return err
		}
	}
	return nil
}

// connectServers gives the servers their addresses.
func connectServers() error {
	lines := []string{"link set lo up", "link set " + serverLink + " up"}
	for _, a := range addresses {
		lines = append(lines, "addr add "+a+"/24 dev "+serverLink)
	}
	if err := letDrop(); err != nil {
		return err
	}
	return ip(append(lines, "neigh replace "+clientAddress+" lladdr "+clientMAC+" dev "+serverLink+" nud permanent")...)
}

// letDrop prepares the routing of the servers. Its first rule is that of the machine's own addresses: it moves behind those of drop.
func letDrop() error { return ip("rule add pref 100 lookup local", "rule del pref 0") }

// drop drops the packets from and to an address of the servers, until keep.
func drop(address string) error { return rules("add", address) }

func keep(address string) error { return rules("del", address) }

func rules(verb, address string) error {
	return ip("rule "+verb+" pref 10 to "+address+"/32 blackhole", "rule "+verb+" pref 10 from "+address+"/32 blackhole")
}
