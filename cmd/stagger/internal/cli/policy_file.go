// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// ReadFile reads a file, or for "-" the command's input: at most one byte more than the largest valid file.
func ReadFile(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(c.InOrStdin(), document.MaxBytes+1))
	}
	return document.ReadFile(file)
}

// Load reads descriptor sets and a policy file, or for "-" the command's input.
func Load(c *cobra.Command, file string, images []string) (known API, set *methods.Set, err error) {
	if known, err = LoadAPI(images); err != nil {
		return known, nil, err
	}
	data, err := ReadFile(c, file)
	if err != nil {
		return known, nil, err
	}
	parsed, err := policy.Parse(FileName(file), data)
	if err != nil {
		return known, nil, err
	}
	return known, methods.Describe(parsed, known.files...), nil
}

// WriteJSON writes a value as indented JSON of printable characters.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(document.PrintableJSON(b.Bytes()))
	return err
}

// Name returns a name from a file or an argument as a line may begin with it: printable, and in quotes if it would be a command to
// GitHub's runners, which take each line that begins with two colons for one.
func Name(name string) string {
	if strings.HasPrefix(strings.TrimSpace(name), "::") {
		return strconv.Quote(name)
	}
	return document.Printable(name)
}

// WriteFile writes to a file, or to the command's output if it has no name.
func WriteFile(c *cobra.Command, file string, data []byte) error {
	if file == "" {
		_, err := c.OutOrStdout().Write(data)
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// FileName returns the name of a file in messages.
func FileName(file string) string {
	if file == "-" {
		return "<stdin>"
	}
	return file
}

// CompleteFiles completes any number of policy files.
func CompleteFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// CompleteFile completes one policy file, and no further arguments.
func CompleteFile(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return CompleteFiles(c, args, word)
}

// API holds descriptor sets; the zero API has none.
type API struct{ files []*protoregistry.Files }

// DescriptorsFlag adds --descriptors to c.
func DescriptorsFlag(c *cobra.Command, images *[]string) {
	c.Flags().StringArrayVar(images, "descriptors", nil,
		"descriptor set of the API, made by \"buf build -o `image.binpb`\"; may be repeated")
	_ = c.MarkFlagFilename("descriptors", "binpb", "pb", "desc", "protoset") // the flag is there
}

// LoadAPI reads descriptor sets.
func LoadAPI(images []string) (API, error) {
	var a API
	for _, image := range images {
		files, err := LoadDescriptors(image)
		if err != nil {
			return API{}, err
		}
		a.files = append(a.files, files)
	}
	return a, nil
}

// Known reports whether there are descriptor sets.
func (a API) Known() bool { return len(a.files) > 0 }

// Only returns the descriptors of the API, without those of services whose generated code is linked into this program.
func (a API) Only() methods.Descriptors { return methods.Descriptors{Files: a.files, Only: true} }

// Services returns the services by name, each from the first set that has it.
func (a API) Services() []protoreflect.ServiceDescriptor {
	return slices.SortedFunc(a.Only().Services(), func(a, b protoreflect.ServiceDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
}

// Methods returns the names of a service's methods, in the order of its file.
func Methods(s protoreflect.ServiceDescriptor) []string {
	list := make([]string, 0, s.Methods().Len())
	for i := range s.Methods().Len() {
		list = append(list, string(s.Methods().Get(i).Name()))
	}
	return list
}
