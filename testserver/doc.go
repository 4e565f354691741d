// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package testserver is a gRPC server that fails on demand, for tests of clients that retry, and
// for demos of clients with a failing server.
//
// It answers any method of any service, without generated code, in memory (bufconn) or on loopback
// TCP. Scripts define its answers:
//
//	func TestMyClientRetries(t *testing.T) {
//		srv := testserver.Start(t)
//		srv.On("/acme.orders.v1.OrderService/GetOrder",
//			testserver.Fail(codes.Unavailable).Times(2),
//			testserver.OK(&orderspb.Order{Id: "7"}))
//
//		client := orderspb.NewOrderServiceClient(srv.Dial(t, myDialOptions...))
//		order, err := client.GetOrder(t.Context(), &orderspb.GetOrderRequest{Id: "7"})
//		...
//		for _, a := range srv.Attempts() {
//			t.Log(a.Number, a.Time, a.Code, a.Metadata)
//		}
//	}
//
// A script is a sequence of steps: the k-th attempt of a method gets step k, and the last
// step repeats forever. A function makes a [Step] with an end ([OK], [Fail], [Hang],
// [Drop], [Random], [Func]), and methods add actions before the end. Script streams
// move by move with [Play]:
//
//	srv.On("/acme.orders.v1.OrderService/Watch",
//		testserver.Play(testserver.Receive(1), testserver.Send(first, second)).
//			Then(testserver.Fail(codes.Unavailable)),
//		testserver.Play(testserver.Echo(0)))
//
// For tests in other languages, "stagger faultserver" runs the same server as a process, with scripts
// from a file or over HTTP.
//
// # Virtual time
//
// A server in memory works inside a [testing/synctest] bubble: start, dial and call it there.
// An hour of delays then takes milliseconds, and you can assert times exactly. If the client ended
// a call (cancelled, or past its deadline), or the connection was lost, call
// [testing/synctest.Wait] before [Server.Attempts], because the server records the end a
// moment later. Servers on TCP need real time.
package testserver
