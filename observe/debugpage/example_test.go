// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/debugpage"
	"github.com/stagger-go/stagger/policy"
)

// The package comment shows it.
func packageComment(retrier *interceptor.Retrier) error {
	http.Handle("/debug/stagger/", debugpage.Config{}.Handler(retrier))
	return http.ListenAndServe("localhost:6060", nil)
}

var _ = packageComment

func ExampleConfig_SwitchHandler() {
	set, err := policy.Parse("retry.yaml", []byte("{}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	logged := interceptor.Observer{ModeChange: func(from, to interceptor.ModeSwitch) { fmt.Println("from", from.Mode, "to", to.Mode) }} // as observe.Slog does
	retrier, err := interceptor.New(set, interceptor.WithObserver(logged))
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/stagger/switch", debugpage.Config{}.SwitchHandler(retrier))
	server := httptest.NewServer(mux)
	defer server.Close()

	// curl -H 'X-Stagger-Control: 1' -d mode=OFF localhost:6060/debug/stagger/switch
	ask, err := http.NewRequest(http.MethodPost, server.URL+"/debug/stagger/switch", strings.NewReader("mode=OFF"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ask.Header.Set("X-Stagger-Control", "1")
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, retrier.State().Switches[0].Mode)
	// Output:
	// from ENFORCE to OFF
	// 200 OK OFF
}

func ExampleConfig_Handler() {
	set, err := policy.Parse("retry.yaml", []byte("{}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set)
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/stagger/", debugpage.Config{}.Handler(retrier))
	// http.ListenAndServe("localhost:6060", mux) shows it at http://localhost:6060/debug/stagger/

	stranger := httptest.NewRequest(http.MethodGet, "http://localhost:6060/debug/stagger/", nil)
	stranger.RemoteAddr = "192.0.2.7:4242"
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, stranger)
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 403 debugpage: the page is for this machine only, and both ends of the connection must be loopback addresses, unless debugpage.Config.Authorize is set
}
