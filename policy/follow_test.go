// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func attemptsFile(n string) string {
	return "methodConfig:\n- name: [{service: a.B, method: C}]\n  retryPolicy: {maxAttempts: " + n +
		", initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
}

// followed is a policy file that is followed in virtual time.
type followed struct {
	t    *testing.T
	dir  string // of the test
	path string

	mu  sync.Mutex // guards all below
	now []change   // since after was last called
}

type change struct {
	at       time.Time
	attempts int // of /a.B/C
	err      error
}

// followFile follows a file that prepare has created, with two attempts, until the end of the test.
func followFile(t *testing.T, path string, prepare func(w *followed), test func(w *followed)) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &followed{t: t, dir: dir, path: filepath.Join(dir, path)}
		prepare(w)
		loaded := testkit.Must(policy.Load(w.path))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		policy.Follow(ctx, w.path, loaded, w.changed)
		if now := w.after(time.Minute + 700*time.Millisecond); len(now) > 0 {
			t.Errorf("before any change: %+v", now)
		}
		test(w)
	})
}

func (w *followed) changed(s *policy.Set, err error) {
	c := change{at: time.Now(), err: err}
	if p := lookup(s); p != nil {
		c.attempts = compiled.Of(p).Retry.MaxAttempts
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = append(w.now, c)
}

// after advances the time, and returns the changes since its last call.
func (w *followed) after(d time.Duration) []change {
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.now
	w.now = nil
	return list
}

func lookup(s *policy.Set) *policy.Policy {
	if s == nil {
		return nil
	}
	return s.Lookup("/a.B/C")
}

// put writes a file of the test, with its folders.
func (w *followed) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// point redirects a link, as ln -sfn does, or in one step.
func (w *followed) point(link, to string) {
	w.t.Helper()
	if err := os.Symlink(to, filepath.Join(w.dir, link+".new")); err != nil {
		w.t.Fatal(err)
	}
	w.rename(link+".new", link)
}

func (w *followed) rename(from, to string) {
	w.t.Helper()
	if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
		w.t.Fatal(err)
	}
}

// wants waits up to five seconds, and compares the report: the attempts of a set, or a part of an error.
func (w *followed) wants(what string, attempts int, wrong string) {
	w.t.Helper()
	began := time.Now()
	now := w.after(time.Minute)
	if len(now) != 1 || now[0].attempts != attempts || (now[0].err == nil) != (wrong == "") {
		w.t.Fatalf("%s: %+v; want %d attempts, or the error %q", what, now, attempts, wrong)
	}
	c := now[0]
	if took := c.at.Sub(began); took > 5*time.Second {
		w.t.Errorf("%s: reported after %v; want 5s at most", what, took)
	}
	if wrong != "" && !strings.Contains(c.err.Error(), wrong) {
		w.t.Errorf("%s: %v; want %q", what, c.err, wrong)
	}
}

func TestFollow(t *testing.T) {
	followFile(t, "retry.yaml", func(w *followed) { w.put("retry.yaml", attemptsFile("2")) }, func(w *followed) {
		w.put("retry.yaml", attemptsFile("3"))
		w.wants("written in place", 3, "")
		w.put("new", attemptsFile("4"))
		w.rename("new", "retry.yaml")
		w.wants("replaced", 4, "")
		w.put("retry.yaml", attemptsFile("one"))
		w.wants("a bad file", 0, "retry.yaml:3:")
		w.put("retry.yaml", attemptsFile("4"))
		w.wants("as before", 4, "")
		w.rename("retry.yaml", "away")
		w.wants("gone", 0, "no such file")
		w.rename("away", "retry.yaml")
		w.wants("back", 4, "")
	})
}

func TestFollow_FolderReplaced(t *testing.T) {
	followFile(t, "conf/retry.yaml", func(w *followed) { w.put("conf/retry.yaml", attemptsFile("2")) }, func(w *followed) {
		w.put("conf.new/retry.yaml", attemptsFile("3"))
		w.rename("conf", "conf.old")
		w.rename("conf.new", "conf")
		w.wants("replaced once", 3, "")
		w.put("conf/retry.yaml", attemptsFile("4"))
		w.wants("written in the new one", 4, "")
	})
}

func TestFollow_ReleaseLink(t *testing.T) {
	followFile(t, "current/conf/retry.yaml", func(w *followed) {
		w.put("releases/1/conf/retry.yaml", attemptsFile("2"))
		w.put("releases/2/conf/retry.yaml", attemptsFile("3"))
		w.point("current", "releases/1")
	}, func(w *followed) {
		w.point("current", "releases/2")
		w.wants("pointed to the next release", 3, "")
		w.put("releases/2/conf/retry.yaml", attemptsFile("4"))
		w.wants("written there", 4, "")
	})
}

func TestFollow_LinkToFile(t *testing.T) {
	followFile(t, "retry.yaml", func(w *followed) {
		w.put("elsewhere/policy", attemptsFile("2"))
		w.point("retry.yaml", "elsewhere/policy")
	}, func(w *followed) {
		w.put("elsewhere/policy", attemptsFile("3"))
		w.wants("written where the link leads to", 3, "")
	})
}

// Kubernetes keeps a ConfigMap in a folder, which a link ..data points to. It replaces the link, and then removes the old
// folder.
func TestFollow_ConfigMap(t *testing.T) {
	followFile(t, "retry.yaml", func(w *followed) {
		w.put("..1/retry.yaml", attemptsFile("2"))
		w.point("..data", "..1")
		w.point("retry.yaml", filepath.Join("..data", "retry.yaml"))
	}, func(w *followed) {
		for _, n := range []string{"3", "4"} {
			w.put("..v"+n+"/retry.yaml", attemptsFile(n))
			w.point("..data", "..v"+n)
			testkit.NoError(t, os.RemoveAll(filepath.Join(w.dir, "..1")))
			w.wants("swapped", int(n[0]-'0'), "")
		}
	})
}

// The first half of a file can be a valid file.
func TestFollow_SlowWriter(t *testing.T) {
	followFile(t, "retry.yaml", func(w *followed) { w.put("retry.yaml", attemptsFile("2")) }, func(w *followed) {
		var text strings.Builder
		for _, line := range strings.SplitAfter("maxWaiting: 7\n"+attemptsFile("3")+strings.Repeat("# more\n", 20), "\n") {
			text.WriteString(line)
			w.put("retry.yaml", text.String())
			time.Sleep(time.Second)
		}
		if now := w.after(0); len(now) > 0 {
			w.t.Errorf("while it is written: %+v", now)
		}
		w.wants("written", 3, "")
	})
}

func TestFollow_AwayForAMoment(t *testing.T) {
	followFile(t, "retry.yaml", func(w *followed) { w.put("retry.yaml", attemptsFile("2")) }, func(w *followed) {
		w.rename("retry.yaml", "away")
		time.Sleep(1900 * time.Millisecond)
		w.rename("away", "retry.yaml")
		if now := w.after(time.Minute); len(now) > 0 {
			w.t.Errorf("away for less than two readings: %+v", now)
		}
	})
}

// Another program may change the file after it was loaded and before it is followed.
func TestFollow_ChangeSinceLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &followed{t: t, dir: dir, path: filepath.Join(dir, "retry.yaml")}
		w.put("retry.yaml", attemptsFile("2"))
		loaded := testkit.Must(policy.Load(w.path))(t)
		w.put("retry.yaml", attemptsFile("3"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		policy.Follow(ctx, w.path, loaded, w.changed)
		w.wants("loaded", 3, "")
	})
}

func TestFollow_MissingFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &followed{t: t, dir: dir, path: filepath.Join(dir, "none", "retry.yaml")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		policy.Follow(ctx, w.path, testkit.Must(compiled.NewSet(spec.Config{}))(t), w.changed)
		w.wants("nothing there", 0, "no such file")
		w.put("none/retry.yaml", attemptsFile("3"))
		w.wants("made", 3, "")
	})
}
