// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser returns a context of a headless Chromium of its own. Without one on this machine the test
// is skipped, and fails where `make test` or a workflow has promised one.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const what = "no Chromium in the PATH to open the report in; `make test` installs it (.ci/chromium)"
		if cmp.Or(os.Getenv("STAGGER_CHROMIUM"), os.Getenv("CI")) != "" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1200, 900),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // against a browser that hangs
	t.Cleanup(cancel)
	return ctx
}

// visit is what a browser does with a page.
type visit struct {
	mu       sync.Mutex
	requests []string // what it asked for, data: aside
	trouble  []string // what it logged
}

func (v *visit) listen(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "data:") {
			v.requests = append(v.requests, e.Request.URL)
		}
	case *log.EventEntryAdded:
		v.trouble = append(v.trouble, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		v.trouble = append(v.trouble, "console."+string(e.Type))
	case *runtime.EventExceptionThrown:
		v.trouble = append(v.trouble, e.ExceptionDetails.Text)
	}
}

// open shows a page to a browser, which asks for nothing more once this returns.
func open(ctx context.Context, t *testing.T, page []byte) (address string, v *visit) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	address, v = "file://"+path, &visit{}
	if err := chromedp.Listen(ctx, v.listen); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, err2 := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, err3 := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	if err := errors.Join(err, err2, err3, chromedp.Do(ctx, chromedp.Navigate(address))); err != nil {
		t.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return address, &visit{requests: slices.Clone(v.requests), trouble: slices.Clone(v.trouble)}
}

// shape is what a page looks like to a reader.
type shape struct {
	Plots []struct {
		Width, Height float64
		Drawn         int    // strokes that are visible
		Name          string // as a screen reader says it
	}
	Tables, Scripts, Images, Repeated int
	Wider                             bool // than the window
}

const look = `({
	Plots: [...document.querySelectorAll('svg.plot')].map(svg => ({
		Width: svg.getBoundingClientRect().width,
		Height: svg.getBoundingClientRect().height,
		Drawn: [...svg.querySelectorAll('path')].filter(p => {
			const box = p.getBoundingClientRect(), style = getComputedStyle(p)
			return box.width + box.height > 1 && (style.stroke !== 'none' || style.fill !== 'none')
		}).length,
		Name: svg.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent).join(': '),
	})),
	Tables: document.querySelectorAll('table').length,
	Scripts: document.scripts.length,
	Images: document.images.length,
	Repeated: [...document.querySelectorAll('[id]')].length - new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size,
	Wider: document.documentElement.scrollWidth > window.innerWidth,
})`

func TestBrowserShowsThePage(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	address, v := open(ctx, t, rendered(t))
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[shape](look))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.requests, []string{address}) {
		t.Errorf("the browser asked for %q; want the file alone, %q", v.requests, address)
	}
	if len(v.trouble) > 0 {
		t.Errorf("the browser complained: %q", v.trouble)
	}
	if len(seen.Plots) != 7 || seen.Tables != 8 || seen.Scripts != 0 || seen.Images != 0 || seen.Repeated != 0 || seen.Wider {
		t.Errorf("%+v; want 7 plots, 8 tables, no script, no image, no id twice, not wider than the window", seen)
	}
	for i, p := range seen.Plots {
		if p.Width < 400 || p.Height < 40 || p.Drawn < 3 || p.Name == "" {
			t.Errorf("plot %d: %+v; want it to be drawn, of some size, with a name", i, p)
		}
	}
}

// What the test above relies on: that a browser's requests and complaints are seen.
func TestBrowserRequestIsSeen(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		http.NotFound(w, r)
	}))
	t.Cleanup(outside.Close)
	text := `<img src="` + outside.URL + `/x.png"><script>console.error("no")</script>`
	_, v := open(browser(t), t, []byte(text))
	if !slices.Contains(v.requests, outside.URL+"/x.png") || !slices.Contains(v.trouble, "console.error") {
		t.Errorf("requests %q, complaints %q; want the picture and console.error among them", v.requests, v.trouble)
	}
	// The page's own policy stops what its escaping would have let through.
	_, v = open(browser(t), t, bytes.Replace(rendered(t), []byte("</body>"), []byte(text+"</body>"), 1))
	refused := func(s string) bool { return strings.Contains(s, "Content Security Policy") }
	if !slices.ContainsFunc(v.trouble, refused) || slices.Contains(v.trouble, "console.error") || reached.Load() != 1 {
		t.Errorf("complaints %q, %d requests came; want that the policy refused, no script ran, and one came, of the page before",
			v.trouble, reached.Load())
	}
}
