// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command modzip puts a version of a module into a folder that a GOPROXY can name, as a module proxy serves it.
//
//	modzip PROXY REPOSITORY FOLDER MODULE VERSION
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: modzip PROXY REPOSITORY FOLDER MODULE VERSION")
		os.Exit(2)
	}
	version := module.Version{Path: os.Args[4], Version: os.Args[5]}
	if err := publish(os.Args[1], os.Args[2], os.Args[3], version); err != nil {
		fmt.Fprintln(os.Stderr, "modzip:", err)
		os.Exit(1)
	}
}

// publish writes what the go command asks a proxy for: the list of versions, and of this one time, go.mod and files.
func publish(proxy, repository, folder string, v module.Version) (err error) {
	path, err := module.EscapePath(v.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := os.Create(filepath.Join(dir, v.Version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := zip.CreateFromVCS(files, v, repository, "HEAD", folder); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(repository, folder, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf("{\"Version\": %q, \"Time\": %q}\n", v.Version, time.Now().UTC().Format(time.RFC3339))
	return errors.Join(
		os.WriteFile(filepath.Join(dir, v.Version+".mod"), mod, 0o644),
		os.WriteFile(filepath.Join(dir, v.Version+".info"), []byte(info), 0o644),
		os.WriteFile(filepath.Join(dir, "list"), []byte(v.Version+"\n"), 0o644),
	)
}
