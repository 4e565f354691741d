// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"crypto/sha256"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// digest stands for a text, which may be long.
type digest [sha256.Size]byte

// texts are the service configs that were read, by what they say: a resolver delivers them anew each time it
// looks.
type texts struct {
	mu     sync.Mutex // guards the writing
	byText map[digest]*deliveredText
	order  []digest
	marks  sync.Map // *bool to *origin
}

// maxTexts bounds how many are kept. Of those that are forgotten, retry policies still hold.
const maxTexts = 256

// deliveredText is one service config.
type deliveredText struct {
	origin

	err     error // why it is not followed
	no, yes bool  // false and true: what they say means nothing, their places are the mark
}

// read returns what a text says.
func (t *texts) read(text string) *deliveredText {
	sum := digest(sha256.Sum256([]byte(text)))
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byText[sum]; known != nil {
		return known
	}
	fresh := &deliveredText{yes: true}
	fresh.set, fresh.err = policy.ParseServiceConfig([]byte(text))
	if t.byText == nil {
		t.byText = map[digest]*deliveredText{}
	}
	if len(t.order) == maxTexts {
		old := t.byText[t.order[0]]
		t.marks.Delete(&old.no)
		t.marks.Delete(&old.yes)
		delete(t.byText, t.order[0])
		t.order = t.order[1:]
	}
	t.byText[sum], t.order = fresh, append(t.order, sum)
	t.marks.Store(&fresh.no, &fresh.origin)
	t.marks.Store(&fresh.yes, &fresh.origin)
	return fresh
}

// find is the config that an entry is marked as part of; nil if it is of none.
func (t *texts) find(mark *bool) *origin {
	o, ok := t.marks.Load(mark)
	if !ok {
		return nil
	}
	return o.(*origin) //nolint:errcheck,forcetypeassert // nothing else is stored
}

// mark has each entry of what gRPC has read say where it comes from, by the address of its waitForReady;
// absent means false to gRPC.
func (t *deliveredText) mark(config *grpc.ServiceConfig) { //nolint:staticcheck // gRPC tells in no other way
	if _, ok := config.Methods[""]; !ok {
		config.Methods[""] = grpc.MethodConfig{} //nolint:staticcheck // the same
	}
	for name, entry := range config.Methods {
		switch {
		case entry.WaitForReady != nil && *entry.WaitForReady:
			entry.WaitForReady = &t.yes
		default:
			entry.WaitForReady = &t.no
		}
		config.Methods[name] = entry
	}
}
