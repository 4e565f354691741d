// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// sight is the outside view of a call.
type sight struct {
	sender, receiver []result // results of the application's calls
	third            []result // and of a third goroutine's
	header, trailer  string   // of the options
	peer             bool
	finished         []string      // arguments of OnFinish
	asked            string        // the stream's answer in OnFinish
	attempts         []string      // as received by the server
	waited           bool          // the call has ended in a backoff
	reason           string        // why it was not retried again; "" if gRPC decided
	whole            bool          // the application has received the end
	cancelled        time.Duration // when it has cancelled by hand; 0: it hasn't
}

// result is what one call returned, and when.
type result struct {
	call, got string
	at        time.Duration
	began     time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("%s=%s@%v", r.call, r.got, r.at.Round(100*time.Microsecond))
}

// application plays the application's part of a script.
type application struct {
	*script
	*sight

	conn    *grpc.ClientConn
	form    form
	start   time.Time
	cancels context.CancelFunc
	stream  grpc.ClientStream
	open    atomic.Pointer[grpc.ClientStream] // for OnFinish
	mu      sync.Mutex                        // guards finished and asked
	sent    int
	closed  bool
	ended   bool
	began   [2]time.Duration // the last move of each goroutine: of the receiver, and of the sender
	gone    atomic.Int64     // when the application has cancelled by hand; 0: it hasn't

	header  metadata.MD
	trailer metadata.MD
	peer    peer.Peer
}

// longest is the limit of a call: one that takes longer hangs.
const longest = time.Hour

// live plays the script's application on a connection. It calls atEnd if the application has received the end of the call.
func (s *script) live(ctx context.Context, conn *grpc.ClientConn, atEnd func(), extra ...grpc.CallOption) *sight {
	a := &application{script: s, sight: new(sight), conn: conn, form: forms[s.form], start: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	if s.deadline > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.deadline)
	}
	a.cancels = func() {
		a.gone.CompareAndSwap(0, int64(time.Since(a.start)))
		cancel()
	}
	defer cancel()
	if s.deadline > s.late && s.late > 0 {
		ctx = lateContext{ctx, a.start.Add(s.deadline - s.late)}
	}
	if s.cancel > 0 && !s.byHand {
		defer time.AfterFunc(s.cancel, cancel).Stop()
	}
	if s.closes > 0 {
		defer time.AfterFunc(s.closes, func() { _ = conn.Close() }).Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.panicked(false)
		a.call(metadata.AppendToOutgoingContext(ctx, "call", "x"), append(a.options(), extra...))
	}()
	select {
	case <-done:
	case <-time.After(longest):
		cancel()
		<-done
		a.receiver = append(a.receiver, result{call: "the application", got: "hangs", at: longest})
	}
	a.whole, a.cancelled = a.ended, time.Duration(a.gone.Load())
	if a.whole {
		synctest.Wait()
		atEnd()
	}
	cancel()
	time.Sleep(time.Second) // until the last goroutine has noticed
	synctest.Wait()
	a.waited = strings.Contains(fmt.Sprint(a.finished), " before attempt ")
	a.sight.header, a.sight.trailer, a.sight.peer = pairs(a.header), pairs(a.trailer), a.peer.Addr != nil
	return a.sight
}

// pairs returns metadata as text.
func pairs(md metadata.MD) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(md)) {
		list = append(list, fmt.Sprintf("%s=%q", key, md[key]))
	}
	return fmt.Sprint(list)
}

func (a *application) options() []grpc.CallOption {
	opts := []grpc.CallOption{grpc.Header(&a.header), grpc.Trailer(&a.trailer), grpc.Peer(&a.peer), grpc.OnFinish(a.onFinish)}
	if a.form.option != nil {
		opts = append(opts, a.form.option)
	}
	if a.buffer > -2 {
		opts = append(opts, grpc.MaxRetryRPCBufferSize(a.buffer))
	}
	if a.limited {
		opts = append(opts, grpc.MaxCallSendMsgSize(60), grpc.MaxCallRecvMsgSize(60))
	}
	if a.ready {
		opts = append(opts, grpc.WaitForReady(true))
	}
	return opts
}

// onFinish queries the stream, as gRPC allows.
func (a *application) onFinish(err error) {
	asked := ""
	if stream := a.open.Load(); stream != nil {
		switch a.asks {
		case "trailer":
			asked = pairs((*stream).Trailer())
		case "header":
			md, err := (*stream).Header()
			asked = pairs(md) + textOfError(err)
		case "context":
			asked = fmt.Sprint((*stream).Context() != nil)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished, a.asked = append(a.finished, textOfError(err)), asked
}

// textOfError returns the text that an application reads from an error.
func textOfError(err error) string {
	switch st, ok := status.FromError(err); {
	case err == nil:
		return "ok"
	case err == io.EOF:
		return "EOF"
	case !ok:
		return "no status: " + err.Error()
	default:
		var text strings.Builder
		fmt.Fprintf(&text, "%v(%s)", st.Code(), st.Message())
		for _, detail := range st.Proto().GetDetails() {
			text.WriteString(detail.GetTypeUrl())
		}
		return text.String()
	}
}

// lastMove is when a goroutine of the application has begun its last move.
func (a *application) lastMove(sends bool) *time.Duration {
	if sends && a.together {
		return &a.began[1]
	}
	return &a.began[0]
}

func (a *application) log(sends bool, call, got string) {
	r := result{call: call, got: got, at: time.Since(a.start), began: *a.lastMove(sends)}
	if sends && a.together {
		a.sender = append(a.sender, r)
	} else {
		a.receiver = append(a.receiver, r)
	}
}

// panicked records a panic in one of the application's calls.
func (a *application) panicked(sends bool) {
	if p := recover(); p != nil {
		a.log(sends, "panic", fmt.Sprint(p))
	}
}

func (a *application) call(ctx context.Context, opts []grpc.CallOption) {
	if a.kind == unary {
		reply := a.form.empty()
		err := a.conn.Invoke(ctx, method, a.form.make("c0"), reply, opts...)
		a.log(false, "Invoke", textOfError(err))
		if err == nil {
			a.log(false, "reply", a.form.text(reply))
		}
		return
	}
	stream, err := a.conn.NewStream(ctx, a.kind.desc(), method, opts...)
	a.log(false, "NewStream", textOfError(err))
	if err != nil {
		return
	}
	a.stream = stream
	a.open.Store(&stream)
	var wg sync.WaitGroup
	defer wg.Wait()
	if len(a.script.third) > 0 {
		wg.Go(a.ask)
	}
	if a.together {
		wg.Go(func() {
			defer a.panicked(true)
			a.play(true)
		})
		a.play(false)
	} else {
		for _, m := range a.moves {
			a.act(m)
		}
		if !a.leaves {
			a.act(move{what: "close", sends: true})
		}
	}
	a.rest()
}

// play makes the moves of one of two goroutines.
func (a *application) play(sends bool) {
	for _, m := range a.moves {
		if m.sends == sends {
			a.act(m)
		} else {
			time.Sleep(m.after)
			*a.lastMove(sends) = time.Since(a.start)
		}
	}
	if sends && !a.leaves {
		a.act(move{what: "close", sends: true})
	}
}

// ask makes the moves of the third goroutine.
func (a *application) ask() {
	for _, m := range a.script.third {
		time.Sleep(m.after)
		r := result{call: m.what, began: time.Since(a.start)}
		switch m.what {
		case "header":
			md, err := a.stream.Header()
			r.got = pairs(md) + textOfError(err)
		case "context":
			r.got = fmt.Sprint(a.stream.Context() != nil)
		}
		r.at = time.Since(a.start)
		a.sight.third = append(a.sight.third, r)
	}
}

// rest receives to the end, and then checks the trailer, unless the application leaves.
func (a *application) rest() {
	if a.leaves {
		time.Sleep(ms)
		a.cancels()
		return
	}
	for i := 0; !a.ended && i < 50; i++ {
		a.act(move{what: "recv", after: a.slow + ms})
	}
	a.log(false, "Trailer", pairs(a.stream.Trailer()))
	a.log(false, "RecvMsg again", textOfError(a.stream.RecvMsg(a.form.empty())))
	md, err := a.stream.Header()
	a.log(false, "Header again", pairs(md)+textOfError(err))
}

// act makes a move.
func (a *application) act(m move) {
	time.Sleep(m.after)
	*a.lastMove(m.sends) = time.Since(a.start)
	if a.byHand && a.cancel > 0 && time.Since(a.start) > a.cancel {
		a.cancels()
	}
	switch m.what {
	case "send":
		if a.closed {
			return
		}
		text := textOf(fmt.Sprint("c", a.sent), m.large)
		a.sent++
		message := a.form.make(text)
		a.log(m.sends, "SendMsg", textOfError(a.stream.SendMsg(message)))
	case "prepared":
		if a.closed || a.form.option != nil {
			return
		}
		prepared := new(grpc.PreparedMsg)
		err := prepared.Encode(a.stream, a.form.make(textOf(fmt.Sprint("c", a.sent), m.large)))
		if err == nil {
			a.sent++
			err = a.stream.SendMsg(prepared)
		}
		a.log(m.sends, "SendMsg of PreparedMsg", textOfError(err))
	case "close":
		if !a.closed {
			a.closed = true
			a.log(m.sends, "CloseSend", textOfError(a.stream.CloseSend()))
		}
	case "context":
		a.log(m.sends, "Context", fmt.Sprint(a.stream.Context() != nil))
	case "header":
		md, err := a.stream.Header()
		a.log(m.sends, "Header", pairs(md)+textOfError(err))
	case "recv":
		a.receive(a.form.empty())
	case "recv nil":
		if a.form.option == nil {
			a.receive(nil)
		}
	}
}

func (a *application) receive(reply any) {
	if a.ended {
		return
	}
	err := a.stream.RecvMsg(reply)
	got := textOfError(err)
	if err == nil {
		got = a.form.text(reply)
	}
	a.log(false, "RecvMsg", got)
	a.ended = err != nil || !a.kind.desc().ServerStreams
}
