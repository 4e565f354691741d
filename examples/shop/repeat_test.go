// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/repeat"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// What the shop declares idempotent is.
func TestShop_Repeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := testkit.Must(policy.Load("retry.yaml"))(t)
		servers, retriers := map[string]*testserver.Server{}, []*interceptor.Retrier{}
		var notes []string
		for _, name := range []string{"payments", "inventory", "orders", "gateway"} {
			retrier := testkit.Must(interceptor.New(set, repeat.ForTests(nil), interceptor.WithObserver(interceptor.Observer{
				Diagnostic: func(d policy.Diagnostic) {
					if d.Field == "repeat" {
						t.Error(d)
					} else if d.Severity == "note" && d.Field == "repeat.ForTests" {
						notes = append(notes, name+" "+d.Message)
					}
				},
			})))(t)
			p := &process{workers: newWorkers(services[name].workers, services[name].pace), retrier: retrier, conns: map[string]*grpc.ClientConn{}}
			p.ledger = testkit.Must(openLedger(filepath.Join(t.TempDir(), name)))(t)
			defer p.ledger.file.Close()
			for _, below := range services[name].calls {
				p.conns[below] = servers[below].Dial(t, retrier.DialOptions()...)
			}
			servers[name] = testserver.Start(t, testserver.ServerOptions(p.serverOptions(retrier)...), testserver.Register(func(r grpc.ServiceRegistrar) { p.register(r, name) }))
			retriers = append(retriers, retrier)
		}
		conn := servers["gateway"].Dial(t)
		for i := range 20 {
			for _, method := range []string{"Browse", "Buy"} {
				testkit.NoError(t, conn.Invoke(t.Context(), "/"+names["gateway"]+"/"+method, wrapperspb.String(fmt.Sprint("purchase-", i)), new(wrapperspb.StringValue)))
			}
			time.Sleep(time.Second)
		}
		for _, r := range retriers {
			r.Close()
		}
		// gateway: GetOrder. orders: GetStock for each, and Pay; not again for the second GetOrder.
		for i, want := range []string{"payments 0", "inventory 0", "orders 60", "gateway 20"} {
			if !strings.HasPrefix(notes[i], want+" second calls were as the first, 0 differed, 0 got no response, and 0 not made") {
				t.Errorf("%s; want %s as the first", notes[i], want)
			}
		}
	})
}
