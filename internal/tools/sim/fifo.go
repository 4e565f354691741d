// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// fifo is a queue: first in, first out, unless the newest is asked for. The zero value is empty.
type fifo[T any] struct {
	list  []T
	first int
}

func (f *fifo[T]) len() int { return len(f.list) - f.first }

// front is the first value; there must be one.
func (f *fifo[T]) front() *T { return &f.list[f.first] }

// back is the last value; there must be one.
func (f *fifo[T]) back() *T { return &f.list[len(f.list)-1] }

func (f *fifo[T]) push(v T) {
	if f.first > 64 && f.first > len(f.list)/2 {
		n := copy(f.list, f.list[f.first:])
		clear(f.list[n:])
		f.list, f.first = f.list[:n], 0
	}
	f.list = append(f.list, v)
}

// pop takes out the first value; there must be one.
func (f *fifo[T]) pop() T {
	v := f.list[f.first]
	clear(f.list[f.first : f.first+1])
	f.first++
	return v
}

// popBack takes out the newest value; there must be one.
func (f *fifo[T]) popBack() T {
	last := len(f.list) - 1
	v := f.list[last]
	clear(f.list[last:])
	f.list = f.list[:last]
	return v
}

// remove takes out the values for which gone is true.
func (f *fifo[T]) remove(gone func(T) bool) {
	n := copy(f.list, slices.DeleteFunc(f.list[f.first:], gone))
	clear(f.list[n:])
	f.list, f.first = f.list[:n], 0
}
