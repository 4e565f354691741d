// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package header says in which metadata keys a server gets an idempotency key.
package header

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/policyfile/defaults"
)

// Lost are the legal metadata keys that don't arrive: gRPC sets them itself, or HTTP/2 servers drop them or refuse the request. A test
// of package policy compares the list with what servers get.
var Lost = []string{
	"connection", "content-length", "content-type", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
	"upgrade",
	"user-agent",
}

// Prefix begins the metadata keys that gRPC keeps for itself, and BinarySuffix ends those whose values are bytes.
const (
	Prefix       = "grpc-"
	BinarySuffix = "-bin"
)

// Legal are the characters of metadata keys.
const Legal = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// Unfit returns why no server gets an idempotency key in a header, and which header is right, or "" if servers get it.
func Unfit(header string) string {
	switch {
	case header == "":
		return "must be a header, such as " + defaults.IdempotencyHeader
	case strings.Trim(header, Legal) != "":
		return `must have only lower-case letters, digits, "-", "_" and "."`
	case strings.HasPrefix(header, Prefix):
		return fmt.Sprintf("must not begin with %s, which gRPC keeps for itself", Prefix)
	case strings.HasSuffix(header, BinarySuffix):
		return fmt.Sprintf("must not end with %s: the key is text", BinarySuffix)
	case slices.Contains(Lost, header):
		return "belongs to gRPC or HTTP/2, so no server gets a key in it; use another, such as " + defaults.IdempotencyHeader
	}
	return ""
}
