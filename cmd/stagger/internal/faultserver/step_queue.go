// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"google.golang.org/protobuf/proto"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// queue is one that has a name.
type queue struct {
	settings *faultserverv1.Queue
	it       *testserver.Queue
}

// onlyName says whether q names a queue and says no more.
func onlyName(q *faultserverv1.Queue) bool {
	return q.GetName() != "" && proto.Equal(q, &faultserverv1.Queue{Name: q.GetName()})
}

// define makes the queues that steps name and describe, so that others may name them, before or after.
func (b *builder) define(path string, steps []*faultserverv1.Step) {
	for i, s := range steps {
		here := document.Item(path, i)
		for depth := 0; s != nil && depth <= maxDepth; depth++ {
			if q := s.GetQueue(); q.GetName() != "" && !onlyName(q) {
				b.defineQueue(here+".queue", q)
			}
			s = s.GetRandom().GetStep()
			here += ".random.step"
		}
	}
}

func (b *builder) defineQueue(path string, q *faultserverv1.Queue) {
	if known, ok := b.queues[q.GetName()]; ok {
		if !proto.Equal(known.settings, q) {
			b.report.Errorf(path+".name", q.GetName(),
				"there is a queue of this name with other settings: must have the same, or the name alone, or another name")
		}
		return
	}
	b.queues[q.GetName()] = queue{q, b.newQueue(path, q)}
}

// queue is the queue that a step goes through; nil for one with errors.
func (b *builder) queue(path string, q *faultserverv1.Queue) *testserver.Queue {
	if q.GetName() == "" {
		return b.newQueue(path, q)
	}
	known, ok := b.queues[q.GetName()]
	if !ok {
		b.report.Errorf(path+".name", q.GetName(), "there is no queue of this name: some step must give its workers and serviceTime")
	}
	return known.it
}

func (b *builder) newQueue(path string, q *faultserverv1.Queue) *testserver.Queue {
	good := true
	if q.GetWorkers() < 1 {
		b.report.Errorf(path+".workers", q.GetWorkers(), "must be at least 1")
		good = false
	}
	service, ok := b.duration(path+".serviceTime", q.GetServiceTime())
	if ok && service <= 0 {
		b.report.Errorf(path+".serviceTime", service, `must be more than 0, such as "0.05s"`)
	}
	var options []testserver.QueueOption
	if name := q.GetRefuseWith(); name != "" {
		if c, ok := b.code(path+".refuseWith", name); ok {
			options = append(options, testserver.RefuseWith(c))
		}
	}
	if q.GetDropAbandoned() {
		options = append(options, testserver.DropAbandoned())
	}
	if !good || !ok || service <= 0 {
		return nil
	}
	return testserver.NewQueue(int(q.GetWorkers()), service, int(q.GetLength()), options...)
}
