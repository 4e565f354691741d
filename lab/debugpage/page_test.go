// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package debugpage_test opens the debug page in a browser. It is in this module so that the library does not depend on the
// browser's driver.
package debugpage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/debugpage"
	"github.com/stagger-go/stagger/testserver"
)

// browser returns a context with its own headless Chromium. If there is none on this machine, the test is skipped; in `make
// test` or a workflow that requires one, it fails.
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
		const what = "no Chromium in the PATH to open the page in; `make browser` installs it (tools/ci/chromium)"
		if os.Getenv("STAGGER_CHROMIUM") != "" {
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

// visit records what a browser does with the page.
type visit struct {
	mu       sync.Mutex
	requests []string // the requests
	trouble  []string // the log
}

func (v *visit) listen(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.requests = append(v.requests, e.Request.URL)
	case *log.EventEntryAdded:
		v.trouble = append(v.trouble, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		v.trouble = append(v.trouble, "console."+string(e.Type))
	case *runtime.EventExceptionThrown:
		v.trouble = append(v.trouble, e.ExceptionDetails.Text)
	}
}

// open opens an address in a browser.
func open(ctx context.Context, t *testing.T, address string) *visit {
	t.Helper()
	v := new(visit)
	testkit.NoError(t, chromedp.Listen(ctx, v.listen))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, err2 := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, err3 := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	testkit.NoError(t, errors.Join(err, err2, err3, chromedp.Do(ctx, chromedp.Navigate(address))))
	return v
}

// until waits in the browser for a condition in JavaScript.
func until(ctx context.Context, t *testing.T, condition string) {
	t.Helper()
	const wait = `new Promise(done => { const look = () => (CONDITION) ? done(true) : setTimeout(look, 20); look() })`
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](strings.Replace(wait, "CONDITION", condition, 1), chromedp.EvalAwaitPromise)); err != nil {
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
		t.Fatalf("%s: %v\n%s", condition, err, text)
	}
}

// A user watches a budget empty during an outage and reads why calls are not retried, without touching the page.
func TestBrowserWatchesAnOutage(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.On("*", testserver.OK())
	testkit.NoError(t, s.call(t, getOrder))
	web := httptest.NewServer(debugpage.Config{}.Handler(s.retrier))
	t.Cleanup(web.Close)
	ctx := browser(t)
	v := open(ctx, t, web.URL+"/debug/stagger/")

	const balance = `document.querySelector('#budgets-1 td.figure').textContent`
	until(ctx, t, `document.getElementById('live').textContent === 'live'`)
	until(ctx, t, balance+` === '3 of 3' && document.querySelector('#decisions-1').textContent.includes('None yet')`)

	s.On("*", down())
	_ = s.call(t, getOrder)
	_ = s.call(t, `/acme.orders.v1.OrderService/<img src=x onerror=console.error(1)>`)
	until(ctx, t, balance+` === '0 of 3'`)
	until(ctx, t, `[...document.querySelectorAll('#decisions-1 tr')].some(row => row.textContent.includes('budget_exhausted')) &&
		[...document.querySelectorAll('#decisions-1 dd')].some(means => means.textContent.includes('is used up: too many of the last retries'))`)
	until(ctx, t, `document.querySelector('#budgets-1 path.refused').getBBox().height > 0`) // the bars follow with the next sample
	until(ctx, t, `document.querySelector('#budgets-1 polyline').getBBox().height > 30`)    // and so does the line

	// While paused, the page does not change. Afterwards it continues.
	testkit.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`#pause`))))
	until(ctx, t, `document.getElementById('live').textContent.startsWith('paused at ')`)
	_ = s.call(t, "/acme.orders.v1.OrderService/Late")
	const late = `document.querySelector('#decisions-1').textContent.includes('Late')`
	until(ctx, t, `new Promise(done => setTimeout(() => done(true), 2500)) && !`+late)
	testkit.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`#pause`))))
	until(ctx, t, late)

	// The reason leads to the explanation of the method.
	const explanation = chromedp.CSS("pre") // visible there, but not here
	testkit.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`#decisions-1 a[href*="GetOrder"]`)), chromedp.WaitVisible(explanation)))
	text := testkit.Must(chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body"))))(t)
	wants(t, text, "The call ends after 700ms with UNAVAILABLE: attempts_exhausted")

	v.mu.Lock()
	defer v.mu.Unlock()
	for _, address := range v.requests {
		if !strings.HasPrefix(address, web.URL+"/debug/stagger/") {
			t.Errorf("the browser asked for %s", address)
		}
	}
	if len(v.requests) < 5 || len(v.trouble) > 0 {
		t.Errorf("requests %q, complaints %q", v.requests, v.trouble)
	}
}

// In a window of 500 pixels no row is high, and no word is broken: tables scroll.
func TestBrowserNarrow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	web := httptest.NewServer(debugpage.Config{ShowErrors: true}.Handler(s.retrier))
	t.Cleanup(web.Close)
	s.On("*", testserver.Fail(codes.Unavailable, strings.Repeat("the disk is full; ", 20)))
	_ = s.call(t, getOrder)
	_ = s.call(t, "/acme.orders.v1.OrderService/ListTheOrdersOfACustomerByTheirStateAndDate")
	ctx := browser(t)
	testkit.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(500, 900)))
	open(ctx, t, web.URL+"/debug/stagger/")
	until(ctx, t, `document.querySelectorAll('#decisions-1 tbody tr').length >= 4`)
	for what, script := range map[string]string{
		"rows of 80 pixels or more": `[...document.querySelectorAll('tr')].filter(row => row.getBoundingClientRect().height >= 80).map(row => row.innerText)`,
		"broken words": `(() => {
			const broken = [], texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
			for (let node; node = texts.nextNode();) for (const word of node.data.matchAll(/[\w.:\/-]+/g)) {
				const range = document.createRange();
				range.setStart(node, word.index);
				range.setEnd(node, word.index + word[0].length);
				if (new Set([...range.getClientRects()].map(r => r.top)).size > 1 && !word[0].includes('-')) broken.push(word[0]);
			}
			return broken;
		})()`,
		"parts that are wider than the window": `document.documentElement.scrollWidth > 500 ? [String(document.documentElement.scrollWidth)] : []`,
	} {
		got := testkit.Must(chromedp.Run(ctx, chromedp.Evaluate[[]string](script)))(t)
		if len(got) > 0 {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// The budgets' table and the page that explains a method are whole on a laptop and on a phone: nothing is beside the window, nor in a part
// that must be scrolled sideways. The screenshots are for people: go test -artifacts keeps them.
func TestBrowserWholePages(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	web := httptest.NewServer(debugpage.Config{}.Handler(s.retrier))
	t.Cleanup(web.Close)
	s.On("*", down())
	_ = s.call(t, getOrder)
	ctx := browser(t)
	for _, width := range []int64{1200, 420} {
		for name, page := range map[string]struct{ address, ready, part string }{
			"budgets": {"", `document.querySelector('#budgets-1 td.figure')`, "#budgets-1 .scroll"},
			"explain": {"explain?hang=on&deadline=1s&method=" + getOrder, `document.querySelector('pre')`, "pre"},
		} {
			testkit.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
			testkit.NoError(t, chromedp.Do(ctx, chromedp.Navigate(web.URL+"/debug/stagger/"+page.address)))
			until(ctx, t, page.ready)
			const beside = `[document.documentElement.scrollWidth - innerWidth, document.querySelector('PART').scrollWidth - document.querySelector('PART').clientWidth]`
			got := testkit.Must(chromedp.Run(ctx, chromedp.Evaluate[[]int](strings.ReplaceAll(beside, "PART", page.part))))(t)
			if got[0] > 0 || got[1] > 0 {
				t.Errorf("%s at %d pixels: %d pixels are beside the window, and %d of %s", name, width, got[0], got[1], page.part)
			}
			shot := testkit.Must(chromedp.Run(ctx, chromedp.FullScreenshot(100)))(t)
			file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d.png", name, width))
			testkit.NoError(t, os.WriteFile(file, shot, 0o600))
			if picture := testkit.Must(png.DecodeConfig(bytes.NewReader(shot)))(t); picture.Width != int(width) {
				t.Errorf("%s: %d pixels wide; want %d", file, picture.Width, width)
			}
		}
	}
}
