// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package testserver is a gRPC server that fails on demand: for tests of clients that retry, and
// for programs that show what a client does when its server is ill.
//
// It answers any method of any service, without generated code, in memory (bufconn) or on loopback
// TCP. What it answers stands in scripts:
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
// A script is a sequence of steps: the k-th attempt of a method carries out step k, and the last
// step repeats forever. A [Step] is built by a word that says how it ends ([OK], [Fail], [Hang],
// [Drop], [Random], [Func]) and refined by methods that say what comes before. Streams
// are scripted move by move with [Play]:
//
//	srv.On("/acme.orders.v1.OrderService/Watch",
//		testserver.Play(testserver.Receive(1), testserver.Send(first, second)).
//			Then(testserver.Fail(codes.Unavailable)),
//		testserver.Play(testserver.Echo(0)))
//
// Tests in other languages have the same server as a process, "stagger faultserver", with its scripts
// in a file or given over HTTP.
//
// # Virtual time
//
// A server in memory works inside a [testing/synctest] bubble: start it, dial it and call it there,
// and an hour of delays takes milliseconds and can be asserted exactly. After a call that ended on
// the client's side (cancelled, or past its deadline) or by the loss of its connection use
// [testing/synctest.Wait] before looking at [Server.Attempts], since the server writes that down a
// moment later. Servers on TCP need real time.
package testserver
