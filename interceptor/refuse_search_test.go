// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// fates is a server on which requests meet what chance wants: they are refused before their handlers, or their handlers run
// and end in any way, with trailers that lie.
type fates struct {
	seed    uint64
	drawn   atomic.Uint64 // requests
	refused atomic.Int64

	mu  sync.Mutex
	ran map[string]int // handlers, by call
}

func (f *fates) random() *rand.Rand { return rand.New(rand.NewPCG(f.seed, f.drawn.Add(1))) }

func (f *fates) take(context.Context, string) (func(), error) {
	if f.random().Float64() < 0.4 {
		f.refused.Add(1)
		return nil, errFull
	}
	return nil, nil
}

// handle has the handler of a call run, which is what must not happen twice.
func (f *fates) handle(ctx context.Context, a testserver.Attempt) testserver.Step {
	id := metadata.ValueFromIncomingContext(ctx, "id")[0]
	f.mu.Lock()
	f.ran[id]++
	f.mu.Unlock()
	r := f.random()
	done, full := testserver.OK(wrapperspb.String("done")), testserver.Fail(codes.ResourceExhausted)
	step := []testserver.Step{
		done, done, done, done, full, full, testserver.Fail(codes.Unavailable), testserver.Fail(codes.NotFound), testserver.Drop(), testserver.Hang(),
	}[r.IntN(10)]
	previous := "0"
	if said := a.Metadata.Get("grpc-previous-rpc-attempts"); len(said) > 0 {
		previous = said[0]
	}
	truth := previous + " " + get // the library's own word, which a handler that has run says only with something before it
	said := []string{"", "0 " + create, strconv.Itoa(7+r.IntN(9)) + " " + get, "no", "0", get, previous + "  " + get, truth + " "}[r.IntN(8)]
	values := [][]string{nil, {said}, {said, truth}, {truth, "no"}, {truth, truth}}[r.IntN(5)]
	before := r.IntN(3)
	if before > 0 && r.IntN(2) == 0 {
		values = []string{truth}
	}
	if values != nil {
		step = step.Trailer(metadata.MD{refusedTrailer: values})
	}
	switch before {
	case 1:
		step = step.Header(metadata.Pairs("x", "y"))
	case 2:
		step = moves.Play(moves.Receive(1), say("a")).Then(step)
	}
	return step.Delay(time.Duration(r.IntN(200)) * ms)
}

// anyUndeclared is a policy of any kind, for methods that are not declared idempotent.
func anyUndeclared(r *rand.Rand) policy.Config {
	c := undeclaredConfig()
	if r.IntN(3) == 0 {
		hedge := hedging()
		hedge.Hedge.Delay = time.Duration(r.IntN(3)) * 50 * ms
		return undeclaredConfig(hedge)
	}
	retry := c.Methods[0].Retry
	retry.PerAttemptTimeout = time.Duration(r.IntN(3)) * 50 * ms
	retry.CancelOnTimeout = r.IntN(2) == 1
	retry.FirstRetryAtOnce = r.IntN(2) == 1
	if retry.PerAttemptTimeout == 0 && r.IntN(2) == 0 {
		retry.CommitOnHeaders = true
	}
	c.Methods[0].Timeout = time.Duration(r.IntN(2)) * 700 * ms
	return c
}

// No handler of a call runs twice if its method is not declared idempotent, with any servers, policies and trailers.
func TestRefuse_Search(t *testing.T) {
	t.Parallel()
	const scenes, calls = 60, 24
	var again, refused atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d refusals; %d calls have succeeded after one", refused.Load(), again.Load())
		if again.Load() < scenes {
			t.Errorf("%d calls have succeeded after a refusal: the search says nothing", again.Load())
		}
	})
	for seed := range uint64(scenes) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			c := anyUndeclared(r)
			play(t, c, func(t *testing.T, s scene) {
				f := &fates{seed: seed, ran: map[string]int{}}
				server := testserver.Start(t, testserver.ServerOptions(
					s.retrier.ServerOptions(interceptor.Refuse(f.take))...))
				server.On("*", testserver.Func(f.handle))
				conn := server.Dial(t, s.retrier.DialOptions()...)
				var running sync.WaitGroup
				for n := range calls {
					var desc *grpc.StreamDesc
					if kind := r.IntN(4); kind > 0 {
						desc = []*grpc.StreamDesc{serverStream, clientStream, bidiStream}[kind-1]
					}
					running.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
						defer cancel()
						_ = exchange(metadata.AppendToOutgoingContext(ctx, "id", strconv.Itoa(n)), conn, desc, get)
					})
				}
				running.Wait()
				synctest.Wait()
				refused.Add(f.refused.Load())
				for _, e := range s.calls {
					if e.Err == nil && e.Attempt > 1 {
						again.Add(1)
					}
				}
				for id, n := range f.ran {
					if n > 1 {
						t.Errorf("call %s: its handler ran %d times, with %s", id, n, fmt.Sprintf("%+v", c.Methods[0].Spec))
					}
				}
			})
		})
	}
}
