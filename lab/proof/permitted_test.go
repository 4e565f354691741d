// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// permission is an intended difference from gRPC. Any other difference is a defect.
type permission struct {
	name string
	by   string // the rule that requires it, in words or in docs

	script func(s *script)                         // converts it to a form that gRPC understands; nil: impossible
	words  func(want, got string) (string, string) // removes permitted differences of texts
	allows func(c *comparison, d difference) bool  // reports whether a difference is the permitted one
}

// comparison has the results of a script in both worlds, in a common form.
type comparison struct {
	script    *script
	ours      world
	want, got *sight
}

func compared(s *script, ours world, want, got *sight) *comparison {
	c := &comparison{s, ours, want.clone(), got.clone()}
	for _, p := range permissions {
		if p.words != nil {
			wanted, gotten := c.want.texts(), c.got.texts()
			for _, text := range wanted {
				*text, _ = p.words(*text, "")
			}
			for _, text := range gotten {
				_, *text = p.words("", *text)
			}
		}
	}
	return c
}

func (s *sight) clone() *sight {
	other := *s
	other.sender, other.receiver, other.finished = slices.Clone(s.sender), slices.Clone(s.receiver), slices.Clone(s.finished)
	return &other
}

// texts returns the texts that may differ in their words.
func (s *sight) texts() []*string {
	list := []*string{&s.header, &s.trailer, &s.asked}
	for i := range s.sender {
		list = append(list, &s.sender[i].got)
	}
	for i := range s.receiver {
		list = append(list, &s.receiver[i].got)
	}
	for i := range s.finished {
		list = append(list, &s.finished[i])
	}
	return list
}

// oneAnswer is the rule that reply, header, trailer, peer, error and OnFinish come from one attempt, once.
const oneAnswer = "one answer"

var permissions = []permission{
	{
		name:   "a unary call keeps nothing for replay, so no limit of the replay buffer commits it",
		by:     "the application's request is there until the call returns",
		script: func(s *script) { s.buffer = map[bool]int{true: -2, false: s.buffer}[s.kind == unary] },
	},
	{
		name: "a malformed pushback means stop, and stays in the trailer",
		by:   "docs/policy-file.md: a malformed pushback means stop",
		script: func(s *script) {
			s.served = slices.Clone(s.served)
			for i := range s.served {
				if end := &s.served[i].end; slices.Equal(end.values, []string{lenient}) {
					end.values = []string{"-1"}
				}
			}
		},
		words: func(want, got string) (string, string) {
			return strings.ReplaceAll(want, strconv.Quote(lenient), `"-1"`), strings.ReplaceAll(got, strconv.Quote(lenient), `"-1"`)
		},
	},
	{
		name:  "the last attempt's error is the server's own, without gRPC's count of attempts in front",
		by:    "the server's own status comes back unchanged",
		words: func(want, got string) (string, string) { return exhausted.ReplaceAllString(want, ""), got },
	},
	{
		name:  "the error of a call that ends in a backoff names the next attempt",
		by:    "an end without a response of its own says where the call was",
		words: func(want, got string) (string, string) { return want, hidden.ReplaceAllString(got, ")") },
	},
	{
		name: "gRPC describes the loss of a connection differently in Header and in RecvMsg; a Retrier always uses the first text",
		by:   oneAnswer,
		words: func(want, got string) (string, string) {
			return lost.ReplaceAllString(want, "($1)"), lost.ReplaceAllString(got, "($1)")
		},
	},
	{
		name: "OnFinish receives the application's error; gRPC's receives another one, or none about a missing or a second reply",
		by:   oneAnswer,
		allows: func(c *comparison, d difference) bool {
			found := c.script.leaves && !strings.Contains(d.got, "given up") && (strings.Contains(d.want, "(context") || strings.Contains(d.want, "is closing)")) // in SendMsg
			late := strings.Contains(d.want, "trying to send message larger than max")                                                                            // after the server has ended the stream
			unread := c.script.byHand && c.got.cutShort() && (c.got.ends(d.got) || c.got.ends(d.want))                                                            // the server's end had arrived before the call was cancelled
			broken := strings.Contains(d.want, "failed to unmarshal") && c.got.cutShort()                                                                         // received when the call was cancelled
			missing := c.script.leaves && strings.Contains(d.got, "cardinality violation")                                                                        // found by Header
			return d.what == "OnFinish" && (found || late || unread || broken || missing || c.got.ends(d.got) && !c.want.ends(d.want))
		},
	},
	{
		name: "at a call's deadline, the server answers or resets the stream: gRPC does either, and its trailer comes or does not",
		by:   "both happen at one moment",
		allows: func(c *comparison, d difference) bool {
			return c.resetAtDeadline() && (d.what == "trailer" || strings.HasPrefix(d.what, "receiver") && d.sameTime() || d.what == "OnFinish" && c.got.ends(d.got))
		},
	},
	{
		name: "a call whose backoff can't end before the deadline ends at once, with the server's error",
		by:   "a wait that can't end before the deadline is not begun",
		allows: func(c *comparison, _ difference) bool {
			return c.got.reason == "[deadline_too_close]" && slices.Equal(c.got.attempts, c.want.attempts[:min(len(c.want.attempts), len(c.got.attempts))])
		},
	},
	{
		name: "a call has one error: RecvMsg returns the error that OnFinish received; gRPC's then returns the server's status or io.EOF",
		by:   oneAnswer,
		allows: func(c *comparison, d difference) bool {
			failed := strings.HasPrefix(d.wanted.call, "RecvMsg") && strings.Contains(d.wanted.got, "(") || strings.Contains(d.wanted.call, "Msg") && d.wanted.got == "EOF" || d.wanted.call == "RecvMsg again"
			return failed && d.sameTime() && slices.Equal(c.got.finished, []string{d.gotten.got}) && (c.got.cutShort() || slices.Equal(c.want.finished, c.got.finished))
		},
	},
	{
		name: "on a stream with one request whose attempts may be slow, other operations wait for the first message beside RecvMsg, or for headers beside Header",
		by:   "until its first message, such a stream is like a unary call",
		allows: func(c *comparison, d difference) bool {
			watched := strings.Contains(c.ours.name, "timeout") || strings.HasPrefix(c.ours.name, "hedges")
			return watched && c.script.together && c.script.kind == serverStream && d.alike() && d.wanted.at < d.gotten.at
		},
	},
	{
		name: "SendMsg of a call that is cancelled returns io.EOF, and sends nothing; gRPC's may still send, or return the context's error",
		by:   "SendMsg of an ended call says only that it has ended",
		allows: func(c *comparison, d difference) bool {
			found := d.gotten.got == "EOF" && strings.HasPrefix(d.gotten.call, "SendMsg") && slices.Contains([]string{"ok", "Canceled(context canceled)"}, d.wanted.got)
			return c.got.cutShort() && (found && d.sameTime() || c.script.byHand && d.what == "attempts" && c.unsent())
		},
	},
	{
		name: "a deadline ends a call when it has passed, with one answer for all; gRPC's goes on until its context is done",
		by:   "one answer, and nothing outlives the deadline",
		allows: func(c *comparison, _ difference) bool {
			single := len(c.got.finished) == 1 && c.got.ends(c.got.finished[0])
			return c.script.late > 0 && c.got.reason == "[deadline_exceeded]" && single
		},
	},
	{
		name: "while several attempts run, or none, no attempt is the answer: a call that ends then has no headers, trailer, peer and context",
		by:   oneAnswer,
		allows: func(c *comparison, d difference) bool {
			unowned := slices.Contains([]string{"header", "trailer", "peer", "asked in OnFinish"}, d.what) || d.gotten.call == "Trailer" || d.gotten.call == "Header again" || strings.Contains(d.gotten.got, "unable to get rpcInfo")
			return unowned && c.got.cutShort() && (c.ours.twins || c.got.waited)
		},
	},
	{
		name: "a stream of messages that aren't protobuf's is sent once: it ends with the server's error",
		by:   "NOT-HANDLED.md: a message that isn't protobuf's commits the stream, since its codec may reuse its buffers",
		allows: func(c *comparison, _ difference) bool {
			return forms[c.script.form].option != nil && c.script.kind != unary &&
				(c.got.reason == "[committed]" || len(c.want.attempts) > 1 && c.got.cutShort()) // before the application has received the error
		},
	},
}

// lenient is a pushback that gRPC accepts as a delay.
const lenient = "+5"

var (
	exhausted = regexp.MustCompile(`max retries exhausted: failed after \d+ attempts: rpc error: code = \w+ desc = |no status: max retries exhausted: failed after \d+ attempts: `)
	hidden    = regexp.MustCompile(`( before attempt \d+)?(; no server had returned an error)?\)`)
	lost      = regexp.MustCompile(`\(connection error: desc = "(.*?)"\)`)
)

// ends reports whether OnFinish was called with the last error of RecvMsg or Invoke.
func (s *sight) ends(told string) bool {
	end := ""
	for _, r := range s.receiver {
		if r.call == "RecvMsg" || r.call == "Invoke" {
			end = r.got
		}
	}
	return end == told || end == "EOF" && told == "ok"
}

// resetAtDeadline reports whether one world got the server's answer at the deadline, and the other one a reset stream at the same moment.
func (c *comparison) resetAtDeadline() bool {
	const answer, reset = "DeadlineExceeded(context deadline exceeded)", "DeadlineExceeded(stream terminated by RST_STREAM with error code: CANCEL)"
	if len(c.want.receiver) == 0 || len(c.want.receiver) != len(c.got.receiver) {
		return false
	}
	w, g := c.want.receiver[len(c.want.receiver)-1], c.got.receiver[len(c.got.receiver)-1]
	return w.got == answer && g.got == reset || w.got == reset && g.got == answer
}

// unsent reports whether SendMsg or CloseSend found the end of the call, where gRPC's sent.
func (c *comparison) unsent() bool {
	want := slices.Concat(c.want.sender, c.want.receiver)
	for i, g := range slices.Concat(c.got.sender, c.got.receiver) {
		if i < len(want) && strings.HasPrefix(g.call, "SendMsg") && g.got == "EOF" && want[i].got == "ok" {
			return len(c.got.attempts) == len(c.want.attempts)
		}
	}
	return strings.Join(c.got.attempts, "") == strings.ReplaceAll(strings.Join(c.want.attempts, ""), "closed true", "closed false")
}

// cutShort reports whether the call was ended by its context or connection.
func (s *sight) cutShort() bool {
	return slices.Contains([]string{"[cancelled]", "[deadline_exceeded]", "[closed]"}, s.reason)
}

// understood returns a script in the form that the world can play.
func (w world) understood(s *script) *script {
	if w.config == nil {
		return s
	}
	other := *s
	for _, p := range permissions {
		if p.script != nil {
			p.script(&other)
		}
	}
	return &other
}

// permits reports whether a difference is permitted.
func (c *comparison) permits(d difference) bool {
	return slices.ContainsFunc(permissions, func(p permission) bool { return p.allows != nil && p.allows(c, d) })
}
