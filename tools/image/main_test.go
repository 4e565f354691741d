// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

var (
	folder  = flag.String("folder", "", "the layout to test, as tools/ci/artifacts makes it")
	version = flag.String("version", "", "its version")
)

// TestImage unpacks the image of each platform, and runs that of this one with nothing but its files.
func TestImage(t *testing.T) {
	if *folder == "" {
		t.Skip("-folder is not given; tools/ci/release gives it")
	}
	index, err := layout.ImageIndexFromPath(*folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	ran := false
	for _, m := range manifest.Manifests {
		platform := m.Platform.String()
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		root := unpacked(t, image)
		program, err := elf.Open(filepath.Join(root, "stagger"))
		if err != nil {
			t.Fatal(err)
		}
		if program.Machine != machines[platform] {
			t.Errorf("%s: the program is for %v", platform, program.Machine)
		}
		if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
			t.Errorf("%s: the program needs %q, %v", platform, libraries, err)
		}
		program.Close()
		delete(machines, platform)
		if m.Platform.Architecture == runtime.GOARCH {
			ran = true
			run(t, image, root)
		}
	}
	if len(machines) > 0 || !ran {
		t.Errorf("no image for %v; ran: %v", machines, ran)
	}
}

// unpacked is a folder with the files of an image: the program, and licences.
func unpacked(t *testing.T, image v1.Image) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	var names []string
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		data, err := io.ReadAll(archive)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, filepath.Base(header.Name)), data, fs.FileMode(header.Mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(names, []string{"stagger", "licenses.txt"}) {
		t.Fatalf("the image has %q; want the program and the licences", names)
	}
	return root
}

// run starts the image's program as a container does: in its files alone, and not as root.
func run(t *testing.T, image v1.Image, root string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("the user is %q", config.Config.User)
	}
	start := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), config.Config.Entrypoint[0], args...)
		c.Dir, c.Env = config.Config.WorkingDir, []string{}
		c.SysProcAttr = &syscall.SysProcAttr{
			Chroot: root, Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}},
			Credential:  &syscall.Credential{Uid: 65532, Gid: 65532, NoSetGroups: true},
		}
		return c
	}
	out, err := start("--version").CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Fatal("this system forbids user namespaces, so the image cannot be run without a container runtime")
	}
	if err != nil || !strings.HasPrefix(string(out), "stagger   "+*version+"\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	lint := start("lint", "-")
	lint.Stdin = strings.NewReader("methodConfig: []\n")
	out, err = lint.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "valid") {
		t.Errorf("%v\n%s\nwant a file that is valid", err, out)
	}
}

// TestWrite has the same image of the same program.
func TestWrite(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	digest := func(version string) string {
		folder := t.TempDir()
		if err := write(folder, version, program, []string{"linux/amd64=" + program}); err != nil {
			t.Fatal(err)
		}
		index, err := layout.ImageIndexFromPath(folder)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return hash.String()
	}
	if first, again, other := digest("v1.0.0"), digest("v1.0.0"), digest("v1.0.1"); first != again || first == other {
		t.Errorf("%s, %s and %s", first, again, other)
	}
	if err := write(t.TempDir(), "v1.0.0", program, []string{"linux/amd64=none"}); err == nil {
		t.Error("a program that is not there is put into an image")
	}
}
