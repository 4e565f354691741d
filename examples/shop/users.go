// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A hundred calls a second, one in five of which buys. If a purchase fails, the user presses the button again.
const (
	between  = 10 * time.Millisecond
	buyEvery = 5
	patience = 5 * time.Second
)

// users call the gateway, without retries of their own.
type users struct {
	conn      *grpc.ClientConn
	purchases int
}

func newUsers(gateway string) (*users, error) {
	conn, err := grpc.NewClient("dns:///"+gateway, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &users{conn: conn}, err
}

// answer is a call's outcome for a user.
type answer struct {
	method string
	code   codes.Code
	took   time.Duration
}

// call makes calls until stop is called, which waits for the responses.
func (u *users) call(ctx context.Context) (stop func() []answer) {
	var (
		mu    sync.Mutex
		seen  []answer
		calls sync.WaitGroup
	)
	over, cancel := context.WithCancel(ctx)
	calls.Go(func() {
		tick := time.NewTicker(between)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-over.Done():
				return
			case <-tick.C:
			}
			method, text := "Browse", "order"
			if n%buyEvery == 0 {
				u.purchases++
				method, text = "Buy", fmt.Sprintf("purchase %d", u.purchases)
			}
			calls.Go(func() {
				a := u.ask(ctx, method, text)
				if method == "Buy" && a.code != codes.OK {
					a = u.ask(ctx, method, text)
				}
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, a)
			})
		}
	})
	return func() []answer {
		cancel()
		calls.Wait()
		return seen
	}
}

func (u *users) ask(ctx context.Context, method, text string) answer {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	err := u.conn.Invoke(ctx, "/"+names["gateway"]+"/"+method, wrapperspb.String(text), new(wrapperspb.StringValue))
	return answer{method, status.Code(err), time.Since(start)}
}
