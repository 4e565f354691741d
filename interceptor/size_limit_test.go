// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A message above a size limit fails again, whichever implementation refuses it. The texts are those of the sources in 2026: grpc-go
// 4793ad04, grpc-java 5fda0c7c, grpc-dotnet 91c8faf2, grpc-node 2670b37a, tonic a55efae7, grpc-swift 664cc40d and
// grpc-swift-nio-transport 39b8e90e, connect-go 96463260, connect-es 4373b0a4, and of C-core, Armeria, Pekko and Envoy; "old" ones are of
// versions that servers still run.
func TestSizeLimit_EveryImplementation(t *testing.T) {
	t.Parallel()
	const exhausted = codes.ResourceExhausted
	for name, row := range map[string]struct {
		code codes.Code
		text string
	}{
		"grpc-go": {exhausted, "grpc: received message larger than max (5000000 vs. 4194304)"},
		"grpc-go, machine": {
			exhausted, "grpc: received message larger than max length allowed on current machine (4294967295 vs. " +
				"2147483647)",
		},
		"grpc-go, compressed":        {exhausted, "grpc: received message after decompression larger than max 4194304"},
		"grpc-go, own compressor":    {exhausted, "grpc: message after decompression larger than max (5000000 vs. 4194304)"},
		"grpc-go, above 4 GiB":       {exhausted, "grpc: message too large (4294967296 bytes)"},
		"grpc-go, its reply":         {exhausted, "trying to send message larger than max (5000000 vs. 4194304)"},
		"C-core":                     {exhausted, "SERVER: Received message larger than max (5000000 vs. 4194304)"},
		"C-core, its reply":          {exhausted, "SERVER: Sent message larger than max (5000000 vs. 4194304)"},
		"C-core, old":                {exhausted, "Received message larger than max (5000000 vs. 4194304)"},
		"C-core, headers":            {exhausted, "received metadata size exceeds hard limit (key length 20000 vs. 16384)"},
		"C-core, headers, old":       {exhausted, "received initial metadata size exceeds hard limit (20000 vs. 16384)"},
		"grpc-java":                  {exhausted, "gRPC message exceeds maximum size 4194304: 5000000"},
		"grpc-java, compressed":      {exhausted, "Decompressed gRPC message exceeds maximum size 4194304"},
		"grpc-java, compressed, old": {exhausted, "Compressed gRPC message exceeds maximum size 4194304: 4200000 bytes read"},
		"grpc-java, compressed, older": {
			exhausted, "io.grpc.internal.MessageDeframer: Compressed frame exceeds maximum frame size: 4194304. " +
				"Bytes read: 4200000. ",
		},
		"grpc-java, its reply": {exhausted, "message too large 5000000 > 4194304"},
		"grpc-java, headers":   {exhausted, "Request metadata larger than 8192: 20000"},
		"Armeria": {
			exhausted, "com.linecorp.armeria.ArmeriaMessageDeframer: Frame size 5000000 exceeds maximum: 4194304. " +
				"",
		},
		"Pekko":                  {exhausted, "Frame length 5000000 exceeds maximum inbound message size 4194304"},
		"grpc-dotnet":            {exhausted, "Received message exceeds the maximum configured message size."},
		"grpc-dotnet, its reply": {exhausted, "Sending message exceeds the maximum configured message size."},
		"grpc-js":                {exhausted, "Received message larger than max (5000000 vs 4194304)"},
		"grpc-js, compressed":    {exhausted, "Received message that decompresses to a size larger than 4194304"},
		"grpc-js, its reply":     {exhausted, "Sent message larger than max (5000000 vs. 4194304)"},
		"grpc-js, client":        {exhausted, "Attempted to send message with a size larger than 4194304"},
		"tonic": {
			codes.OutOfRange, "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 " +
				"bytes",
		},
		"tonic, its reply": {
			codes.OutOfRange, "Error, encoded message length too large: found 5000000 bytes, the limit is: 4194304 " +
				"bytes",
		},
		"tonic, compressed":  {exhausted, "Error decompressing: size limit, of 4194304 bytes, exceeded while decompressing message"},
		"tonic, above 4 GiB": {exhausted, "Cannot return body with more than 4GB of data but got 4294967296 bytes"},
		"grpc-swift 1":       {exhausted, "Payload length exceeds limit (5000000 > 4194304)"},
		"grpc-swift 2": {
			exhausted, "Message has exceeded the configured maximum payload size (max: 4194304, actual: " +
				"5000000)",
		},
		"grpc-swift 2, compressed":     {exhausted, "Message is too large to decompress."},
		"connect-go":                   {exhausted, "message size 5000000 is larger than configured max 4194304"},
		"connect-go, of unknown size":  {exhausted, "message is larger than configured max 4194304 - unable to determine message size: EOF"},
		"connect-go, its reply":        {exhausted, "message size 5000000 exceeds sendMaxBytes 4194304"},
		"connect-go, compressed reply": {exhausted, "compressed message size 5000000 exceeds sendMaxBytes 4194304"},
		"connect-go, behind net/http":  {exhausted, "read enveloped message: exceeded 4194304 byte http.MaxBytesReader limit"},
		"connect-es":                   {exhausted, "message size 5000000 is larger than configured readMaxBytes 4194304"},
		"connect-es, of unknown size":  {exhausted, "message size is larger than configured readMaxBytes 4194304"},
		"connect-es, compressed":       {exhausted, "message is larger than configured readMaxBytes 4194304 after decompression"},
		"connect-es, its reply":        {exhausted, "message size 5000000 is larger than configured writeMaxBytes 4194304"},
		"a gateway that wraps the refusal": {
			exhausted, "orders: rpc error: code = ResourceExhausted desc = gRPC message exceeds maximum size " +
				"4194304: 5000000",
		},
		"Envoy": {codes.Unknown, "Payload Too Large"},
		"nginx, HAProxy": {codes.Unknown, "unexpected HTTP status code received from server: 413 (Request Entity Too Large); " +
			`transport: received unexpected content-type "text/html"`},
		"a proxy, headers": {codes.Unknown, "unexpected HTTP status code received from server: 431 (Request Header Fields Too Large)"},
	} {
		t.Run(name, func(t *testing.T) {
			if attempts, reason := refusedBy(t, row.code, row.text); attempts != 1 || reason != policy.ReasonNonRetryable {
				t.Errorf("%d attempts, %s; want 1, non_retryable", attempts, reason)
			}
		})
	}
}

// Refusals with the same codes that another attempt may change.
func TestSizeLimit_OtherRefusals(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		code codes.Code
		text string
	}{
		"no text, as Vert.x":    {codes.ResourceExhausted, ""},
		"a quota":               {codes.ResourceExhausted, "quota exceeded: 1000 messages a minute is the maximum"},
		"tonic's load shedding": {codes.ResourceExhausted, "Too many active requests for the connection"},
		"HTTP/2 flow control":   {codes.ResourceExhausted, "Bandwidth exhausted or memory limit exceeded"},
		"C-core's soft limit, by chance": {
			codes.ResourceExhausted, "received metadata size exceeds soft limit (9000 vs. 8192), rejecting requests with some " +
				"random probability",
		},
		"Java's soft limit, by chance":     {codes.ResourceExhausted, "Client Headers of size 9000 exceeded Metadata size soft limit: 8192"},
		"the parts in another order":       {codes.ResourceExhausted, "1 > 0: message too large "},
		"another code":                     {codes.Unavailable, "gRPC message exceeds maximum size 4194304: 5000000"},
		"a range that ends":                {codes.OutOfRange, "offset 9 is behind the end"},
		"HTTP 500":                         {codes.Unknown, "unexpected HTTP status code received from server: 500 (Internal Server Error)"},
		"the sizes of another kind's text": {codes.Unknown, "Received message larger than max (5000000 vs. 4194304)"},
	} {
		t.Run(name, func(t *testing.T) {
			if attempts, reason := refusedBy(t, row.code, row.text); attempts != 4 || reason != policy.ReasonAttemptsExhausted {
				t.Errorf("%d attempts, %s; want 4, attempts_exhausted", attempts, reason)
			}
		})
	}
}

// refusedBy returns the attempts of a call that a server refuses, and the reason for its end. The policy lists the codes.
func refusedBy(t *testing.T, code codes.Code, text string) (attempts int, reason policy.Reason) {
	t.Helper()
	listed := plain()
	listed.RetryableStatusCodes = []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.OutOfRange, codes.Unknown}
	play(t, config(listed), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(code, text))
		_, err := s.call(t.Context(), get)
		attempts, reason = s.Count(get), reasonOf(err)
	})
	return attempts, reason
}
