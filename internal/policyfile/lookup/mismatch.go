// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// versionOfPackage matches names that end like package names.
var versionOfPackage = regexp.MustCompile(`^(.*\.)?v[0-9]+((alpha|beta)[0-9]*)?$`)

// Mismatch returns why the name of a method, a service or everything can match no call, and which of its parts is wrong, "service" or
// "method". why is "" if the name may match. Not only generated code has methods, so hyphens are right.
func Mismatch(path string) (part, why string) {
	service, method := Split(path)
	if why = wrongText(service); why != "" {
		return "service", why
	}
	if versionOfPackage.MatchString(service) {
		return "service", "it is the name of a package; write the full name of a service, such as " + service + ".OrderService"
	}
	if why = wrongText(method); why != "" {
		return "method", why
	}
	last := service[strings.LastIndexByte(service, '.')+1:]
	for _, prefix := range []string{service + ".", last + "."} {
		if short, ok := strings.CutPrefix(method, prefix); ok && short != "" {
			return "method", "it repeats the name of the service; write " + short
		}
	}
	return "", ""
}

// wrongText returns which character of a service's or a method's name no name has, or "".
func wrongText(name string) string {
	for i, r := range name {
		if why := wrongCharacter(name, i, r); why != "" {
			return why
		}
	}
	switch {
	case strings.HasPrefix(name, "."):
		return "it begins with a full stop; remove it"
	case strings.HasSuffix(name, "."):
		return "it ends with a full stop; remove it"
	case strings.Contains(name, ".."):
		return "it has two full stops in a row; remove one"
	}
	return ""
}

// wrongCharacter returns why no name has the character at an index, or "".
func wrongCharacter(name string, i int, r rune) string {
	switch {
	case unicode.IsSpace(r) && strings.TrimSpace(name[:i]) != "" && strings.TrimSpace(name[i:]) != "":
		return hasCharacter(name, i, r, blank(r)) + ", and a name is one word"
	case unicode.IsSpace(r):
		return hasCharacter(name, i, r, blank(r)) + "; remove it"
	case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return hasCharacter(name, i, r, fmt.Sprintf("the invisible character %U", r)) + "; remove it"
	case unicode.In(r, unicode.Pi, unicode.Pf), strings.ContainsRune("\"'`„‚", r):
		return hasCharacter(name, i, r, fmt.Sprintf("the quotation mark %c (%U)", r, r)) + "; remove it"
	case strings.ContainsRune(",;|", r):
		return hasCharacter(name, i, r, fmt.Sprintf("%q", r)) + ", and there are no lists of names in one; " +
			"give each a map of its own: name: [{service: …, method: …}, {service: …, method: …}]"
	case strings.ContainsRune("*?", r):
		return "there are no patterns; a service without a method stands for all its methods, and {} for everything"
	case r == ':':
		return "it looks like an address, host:port; write the full name of the service, such as acme.orders.v1.OrderService"
	case r > unicode.MaxASCII:
		return hasCharacter(name, i, r, fmt.Sprintf("%c (%U)", r, r)) + ", and names have only ASCII letters and digits"
	case strings.ContainsRune(`()<>[]{}#%\^`, r):
		return hasCharacter(name, i, r, fmt.Sprintf("%q", r)) + ", which no name has"
	}
	return ""
}

// hasCharacter says where in a name a character is.
func hasCharacter(name string, i int, r rune, what string) string {
	switch {
	case i == 0:
		return "it begins with " + what
	case i+utf8.RuneLen(r) >= len(name):
		return "it ends with " + what
	default:
		return fmt.Sprintf("it has %s after %q", what, name[:i])
	}
}

// blank returns what a blank is called.
func blank(r rune) string {
	switch r {
	case ' ':
		return "a blank"
	case '\t':
		return "a tab"
	case '\n', '\r':
		return "a line break"
	default:
		return fmt.Sprintf("a blank (%U)", r)
	}
}
