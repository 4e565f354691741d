// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package testserver is a gRPC server that fails on demand, for tests of clients that retry, and
// for demos of clients with a failing server.
//
// It responds to any method of any service, without generated code, in memory (bufconn) or on loopback TCP. Scripts define its responses:
//
//	srv := testserver.Start(t)
//	srv.On("/grpc.health.v1.Health/Check",
//		testserver.Fail(codes.Unavailable).Times(2),
//		testserver.OK(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}))
//
//	client := healthpb.NewHealthClient(srv.Dial(t, dialOptions...)) // with the options of your client
//	response, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
//
// A script is a sequence of steps: the k-th attempt of a method gets step k, and the last
// step repeats forever. [OK], [Fail], [Hang], [Drop], [Cut], [Random] and [Func] return a
// [Step] that ends an attempt, and its methods add actions before the end. [Stream] serves a
// stream with a function. [Server.Attempts] returns the recorded attempts, and
// [Observe] calls a function with each of them.
//
// docs/testing-your-client.md has more, also about the same server as a process for tests in other languages.
//
// # Virtual time
//
// A server in memory works inside a [testing/synctest] bubble: start, dial and call it there.
// An hour of delays then takes milliseconds, and you can assert times exactly. If the client ended
// a call (cancelled, or past its deadline), or the connection was lost, call
// [testing/synctest.Wait] before [Server.Attempts], because the server records the end a
// moment later. Servers on TCP need real time.
package testserver
