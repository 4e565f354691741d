// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/mem"
)

// lent is a pool that counts what has not come back.
type lent struct{ out int }

func (l *lent) Get(n int) *[]byte { l.out++; return new(make([]byte, n)) }
func (l *lent) Put(*[]byte)       { l.out-- }

// message is the i-th one: of i bytes, in a buffer of its own that must be freed if pooled.
func message(i int, pool mem.BufferPool) mem.BufferSlice {
	if pool == nil {
		return mem.BufferSlice{mem.SliceBuffer(bytes.Repeat([]byte{byte(i)}, i))}
	}
	b := pool.Get(max(i, 4<<10)) // those are not pooled that are small
	copy(*b, bytes.Repeat([]byte{byte(i)}, i))
	return mem.BufferSlice{mem.NewBuffer(b, pool)}
}

func TestAReplayHoldsWhatWasAddedInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 65, 66, 67, 130, 131, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var total atomic.Int64
			pool := new(lent)
			r := replay{limit: 64 << 20, total: &total, sum: 64 << 20}
			bytes := 0
			for i := range n {
				data := message(i, nil)
				if i%3 == 0 {
					data = message(i, pool)
				}
				bytes += data.Len() + 5
				if !r.add(data) {
					t.Fatalf("message %d does not fit", i)
				}
				data.Free() // gRPC's reference
			}
			for i := range n {
				if got := r.at(i).data.Materialize(); len(got) < i || i > 0 && got[i-1] != byte(i) {
					t.Fatalf("message %d is %d bytes: %v…", i, len(got), got[:min(len(got), 3)])
				}
			}
			if held := int(total.Load()); held < bytes || held > bytes+bytes/8 {
				t.Errorf("%d bytes are taken from the total; want %d, or up to an eighth more", held, bytes)
			}
			if want := (n + 2) / 3; pool.out != want {
				t.Errorf("%d buffers are held; want %d", pool.out, want)
			}
			r.release()
			if pool.out != 0 || total.Load() != 0 || r.length != 0 {
				t.Errorf("%d buffers, %d bytes, %d messages are held after release", pool.out, total.Load(), r.length)
			}
		})
	}
}

// Every replay goes to its own limit exactly, and all together to the total exactly, whatever they have
// taken ahead.
func TestReplaysFillTheirLimitsToTheByte(t *testing.T) {
	const limit, sum = 10_000, 35_000
	chance := rand.New(rand.NewPCG(1, 2))
	var total atomic.Int64
	replays := make([]replay, 5)
	for i := range replays {
		replays[i] = replay{limit: limit, total: &total, sum: sum}
	}
	add := func(r *replay, size int) bool { return r.add(message(size-messageHeader, nil)) }
	for range 5000 {
		r := &replays[chance.IntN(len(replays))]
		if chance.IntN(100) == 0 {
			r.release()
		}
		size := messageHeader + chance.IntN(300)
		others := total.Load() - int64(r.reserved)
		fits := r.bytes+size <= limit && others+int64(r.bytes+size) <= sum
		if got := add(r, size); got != fits {
			t.Fatalf("%d bytes beside %d: kept %v; the others have %d of %d", size, r.bytes, got, others, sum)
		}
		if total.Load() > sum {
			t.Fatalf("%d bytes are taken in all; the limit is %d", total.Load(), sum)
		}
	}
	for i := range replays {
		replays[i].release()
	}
	if total.Load() != 0 {
		t.Errorf("%d bytes are taken after all have let go", total.Load())
	}
}

func TestAMessageInPiecesIsKeptWhole(t *testing.T) {
	pool := new(lent)
	for name, data := range map[string]mem.BufferSlice{
		"none":   nil,
		"empty":  {mem.SliceBuffer(nil)},
		"two":    {mem.SliceBuffer("ab"), mem.SliceBuffer("c")},
		"pooled": {mem.Copy(bytes.Repeat([]byte("x"), 8<<10), pool), mem.SliceBuffer("y")},
	} {
		want := string(data.Materialize())
		var total atomic.Int64
		r := replay{limit: 1 << 20, total: &total, sum: 1 << 20}
		if !r.add(data) || total.Load() != int64(len(want)+5) {
			t.Errorf("%s: %d bytes are taken; want %d", name, total.Load(), len(want)+5)
		}
		data.Free()
		if got := string(r.at(0).data.Materialize()); got != want {
			t.Errorf("%s: %.10q; want %.10q", name, got, want)
		}
		r.release()
	}
	if pool.out != 0 {
		t.Errorf("%d buffers are not given back", pool.out)
	}
}

// A block that another stream has used says nothing of it.
func TestABlockIsUsedAgainEmpty(t *testing.T) {
	var total atomic.Int64
	r := replay{limit: 1 << 20, total: &total, sum: 1 << 20}
	for range 200 {
		r.add(message(7, nil))
	}
	used := r.blocks
	r.release()
	for _, b := range used {
		if *b != (block{}) {
			t.Fatal("a block that was let go still holds messages")
		}
	}
}
