// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command image puts a static program and its licences into an OCI image from scratch, one for each platform, and writes
// their index as a folder in OCI layout. The same input makes the same image.
//
//	image FOLDER VERSION LICENCES linux/amd64=PROGRAM linux/arm64=PROGRAM…
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: image FOLDER VERSION LICENCES PLATFORM=PROGRAM…")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes the index of the images of some platforms.
func write(folder, version, licences string, platforms []string) error {
	notices, err := os.ReadFile(licences)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, given := range platforms {
		name, file, _ := strings.Cut(given, "=")
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		program, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		image, err := of(program, notices, version, *platform)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	_, err = layout.Write(folder, index)
	return err
}

// of makes an image of a program, which is run by a user that is not root.
func of(program, notices []byte, version string, platform v1.Platform) (v1.Image, error) {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	err := errors.Join(add(archive, "stagger", 0o755, program), add(archive, "licenses.txt", 0o644, notices), archive.Close())
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Config = v1.Config{
		Entrypoint: []string{"/stagger"}, User: "65532:65532", WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "stagger",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.source":   "https://github.com/stagger-go/stagger",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// add adds a file to an archive.
func add(archive *tar.Writer, name string, mode int64, data []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}
