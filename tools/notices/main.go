// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command notices prints the licences and notices of all modules that programs were built from, and of Go itself: these licences ask for that
// when a program is passed on. The programs are one program for several platforms. Its own licence is that of LICENSE.
//
//	notices LICENSE PROGRAM…
package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: notices LICENSE PROGRAM…")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, w io.Writer, own string, programs []string) error {
	licence, err := os.ReadFile(own)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "== stagger: LICENSE\n\n%s\n\n", bytes.TrimSpace(licence)); err != nil {
		return err
	}
	modules := map[string]string{} // folders, by path@version
	for _, file := range programs {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			if !strings.HasPrefix(m.Path, ours) {
				modules[m.Path+"@"+m.Version] = ""
			}
		}
	}
	if err := find(ctx, modules); err != nil {
		return err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	modules["Go "+runtime.Version()] = strings.TrimSpace(string(root))
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if err := writeNotices(w, name, modules[name]); err != nil {
			return err
		}
	}
	return nil
}

// ours begins the paths of stagger's own modules.
const ours = "github.com/stagger-go/stagger"

// find downloads modules, and sets their folders.
func find(ctx context.Context, modules map[string]string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"mod", "download", "-json"}, slices.Sorted(maps.Keys(modules))...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct {
			Path    string `json:"path"` // Go writes Path, and JSON is read in either case
			Version string `json:"version"`
			Dir     string `json:"dir"`
		}
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		modules[m.Path+"@"+m.Version] = m.Dir
	}
}

// writeNotices writes the files of a module that have licences and notices. A module without one is an error: it may not be passed on.
func writeNotices(w io.Writer, name, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		if !isNotice(entry.Name()) || entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		if _, err := fmt.Fprintf(w, "== %s: %s\n\n%s\n\n", name, entry.Name(), bytes.TrimSpace(text)); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, folder)
	}
	return nil
}

// isNotice reports whether a file of this name has a licence or a notice.
func isNotice(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(begin string) bool {
		return strings.HasPrefix(name, begin)
	})
}
