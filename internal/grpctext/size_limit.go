// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package grpctext

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
)

// sizeLimits are the texts with which implementations refuse a message, or headers, above a size limit. gRPC has no code of
// its own for that. Each text has its parts, which follow each other in the message: others stand around and between them,
// such as sizes and the name of the side. Limits that are enforced by chance, as C-core's and Java's soft limits for headers, are not
// here: another attempt may pass.
var sizeLimits = map[codes.Code][][]string{
	codes.ResourceExhausted: {
		// grpc-go, Python, Ruby, PHP, C++ and the others on C-core, grpc-js
		{"message larger than max"},
		// grpc-go
		{"grpc: message too large ("},
		{"message after decompression larger than max"},
		// C-core
		{"metadata size exceeds hard limit"},
		// grpc-java; the second and third also of older versions and of Armeria
		{"gRPC message exceeds maximum size "},
		{"Frame size ", " exceeds maximum: "},
		{"Compressed frame exceeds maximum frame size: "},
		{"message too large ", " > "},
		{"Request metadata larger than "},
		// Pekko and Akka
		{"Frame length ", " exceeds maximum inbound message size "},
		// grpc-dotnet
		{"message exceeds the maximum configured message size"},
		// grpc-js
		{"message that decompresses to a size larger than "},
		{"Attempted to send message with a size larger than "},
		// tonic
		{"size limit, of ", " exceeded while decompressing message"},
		{"Cannot return body with more than 4GB of data"},
		// grpc-swift 1 and 2
		{"Payload length exceeds limit ("},
		{"Message has exceeded the configured maximum payload size"},
		{"Message is too large to decompress"},
		// connect-go, connect-es
		{"message ", "is larger than configured "},
		{"message size ", " exceeds sendMaxBytes "},
		{" byte http.MaxBytesReader limit"},
	},
	codes.OutOfRange: {
		// tonic, on both sides
		{"message length too large: found ", " bytes, the limit is: "},
	},
	codes.Unknown: {
		// proxies: grpc-go's text for HTTP 413 and 431 without gRPC's form, Envoy's response in gRPC's form
		{"unexpected HTTP status code received from server: 413 "},
		{"unexpected HTTP status code received from server: 431 "},
		{"Payload Too Large"},
	},
}

// aboveLimit reports whether an error says that a message, or its headers, is above a size limit of either side, or of a proxy.
func aboveLimit(code codes.Code, message string) bool {
	return slices.ContainsFunc(sizeLimits[code], func(parts []string) bool { return containsInOrder(message, parts) })
}

// containsInOrder reports whether text contains all parts, each after the one before it.
func containsInOrder(text string, parts []string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}
