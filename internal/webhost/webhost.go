// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhost says which Host headers the pages and ports of this machine answer. A web site may point its own name to this
// machine's address, so that its scripts reach them: such requests carry the site's name.
package webhost

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Accepted reports whether a Host header, with or without port, is localhost, an IP address, or one of names.
func Accepted(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || slices.ContainsFunc(names, func(known string) bool { return strings.EqualFold(known, host) }) {
		return true
	}
	_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil
}
