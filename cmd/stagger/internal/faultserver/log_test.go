// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// ended returns an ended attempt.
func ended(method string, code codes.Code) testserver.Attempt {
	start := time.Date(2026, 11, 20, 9, 30, 1, 5e6, time.UTC)
	return testserver.Attempt{
		Method: method, Number: 3, Conn: 2, Time: start, End: start.Add(12340 * time.Microsecond),
		Metadata: metadata.Pairs("grpc-previous-rpc-attempts", "1"), Received: 1, Sent: 2, Code: code,
	}
}

func TestLogText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := testkit.Must(newAttemptLog(&out, "text", addresses{Listening: "127.0.0.1:1"}))(t)
	running := ended("/a.B/C", codes.OK)
	running.End = time.Time{}
	log.add(running)
	log.add(ended("/a.B/C", codes.Unavailable))
	first := ended("/a.B/\x1b[31m", codes.OK)
	first.Metadata, first.Cancelled, first.End = nil, true, first.Time.Add(1500)
	log.add(first)
	testkit.NoError(t, log.end())
	want := `listening on 127.0.0.1:1
09:30:01.005  UNAVAILABLE          12.34ms  /a.B/C  attempt 3, retry 1, connection 2, received 1, sent 2
09:30:01.005  OK                       2µs  /a.B/\x1b[31m  attempt 3, connection 2, received 1, sent 2, given up by the client
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestLogJSON(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := testkit.Must(newAttemptLog(&out, "json", addresses{Listening: "127.0.0.1:1"}))(t)
	log.add(ended("/a.B/C", codes.OK))
	testkit.NoError(t, log.end())
	want := `{"listening":"127.0.0.1:1"}
{"method":"/a.B/C","number":3,"connection":2,"startTime":"2026-11-20T09:30:01.005Z","endTime":"2026-11-20T09:30:01.01734Z",` +
		`"timeoutSeconds":0,"previousAttempts":1,"metadata":{"grpc-previous-rpc-attempts":["1"]},"messagesReceived":1,` +
		`"halfClosed":false,"messagesSent":2,"code":"OK","cancelled":false}
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() { _, _ = io.ReadFull(r, make([]byte, len("listening on a:1\n"))) }()
		log := testkit.Must(newAttemptLog(w, "text", addresses{Listening: "a:1"}))(t)
		for range maxUnread {
			log.add(ended("/a.B/C", codes.OK))
		}
		synctest.Wait() // the writer has taken one
		for range 10 + 1 {
			log.add(ended("/a.B/C", codes.OK))
		}
		all := make(chan string, 1)
		time.AfterFunc(time.Second, func() {
			text, _ := io.ReadAll(r)
			all <- string(text)
		})
		if err := log.end(); err == nil || err.Error() != "10 lines are left out: the output was not read" {
			t.Error(err)
		}
		w.Close()
		if n := strings.Count(<-all, "attempt 3"); n != maxUnread+1 {
			t.Errorf("got %d lines; want %d", n, maxUnread+1)
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestLogErrors(t *testing.T) {
	t.Parallel()
	log, err := newAttemptLog(brokenPipe{}, "text", addresses{Listening: "a:1"})
	if err == nil {
		t.Error("no error for the first line")
	}
	log.add(ended("/a.B/C", codes.OK))
	if err := log.end(); err == nil || err.Error() != "broken pipe" {
		t.Errorf("got %v; want the pipe's error", err)
	}
}
