// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// choice is an element of the list in a TXT record (gRFC A2). A client uses the first element that applies to it.
type choice struct {
	ClientLanguage []string        `json:"clientLanguage"`
	ClientHostname []string        `json:"clientHostname"`
	Percentage     *int            `json:"percentage"`
	ServiceConfig  json.RawMessage `json:"serviceConfig"`
}

// recordKey is the prefix of a TXT record with a service config.
const recordKey = "grpc_config="

// fromRecord returns the service config of a TXT record, in the form of a zone file or of dig, and a comment on the rest of
// the record. It returns any other text unchanged.
func fromRecord(data []byte) (config []byte, comment string, err error) {
	text := strings.TrimSpace(string(data))
	if strings.HasPrefix(text, `"`) {
		if text, err = joinStrings(text); err != nil {
			return nil, "", err
		}
	}
	list, ok := strings.CutPrefix(text, recordKey)
	if !ok {
		return data, "", nil
	}
	var choices []choice
	if err := json.Unmarshal([]byte(list), &choices); err != nil {
		return nil, "", fmt.Errorf("TXT record: %s must be followed by a JSON list of {serviceConfig: …}: %w", recordKey, err)
	}
	i := slices.IndexFunc(choices, forGo)
	if i < 0 {
		return nil, "", fmt.Errorf("TXT record: none of its %d elements has a serviceConfig for Go", len(choices))
	}
	return choices[i].ServiceConfig, choices[i].conditions(i, len(choices)), nil
}

func forGo(c choice) bool {
	anyLanguage := len(c.ClientLanguage) == 0
	return len(c.ServiceConfig) > 0 && (anyLanguage || slices.ContainsFunc(c.ClientLanguage, func(l string) bool { return strings.EqualFold(l, "go") }))
}

// conditions returns which clients the config is for, which a policy file cannot express.
func (c choice) conditions(i, of int) string {
	var list []string
	if c.Percentage != nil && *c.Percentage < 100 {
		list = append(list, fmt.Sprintf("%d %% of the clients", *c.Percentage))
	}
	if len(c.ClientHostname) > 0 {
		list = append(list, "the hosts "+strings.Join(c.ClientHostname, ", "))
	}
	if of == 1 && len(list) == 0 {
		return ""
	}
	comment := fmt.Sprintf("Element %d of the %d in the TXT record, the first for Go.", i+1, of)
	if len(list) > 0 {
		comment += " The record has it for " + strings.Join(list, " on ") + " only; this file is for all."
	}
	return comment
}

// joinStrings joins the character strings of a TXT record, which are quoted and escaped as in zone files.
func joinStrings(text string) (string, error) {
	var (
		joined strings.Builder
		inside bool
	)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inside = !inside
		case !inside && strings.IndexByte(" \t\r\n()", c) >= 0: // between two strings
		case !inside:
			return "", fmt.Errorf("TXT record: %q is outside of the quotes", c)
		case c != '\\':
			joined.WriteByte(c)
		case i+1 == len(text):
			return "", errors.New(`TXT record: ends with \`)
		default:
			digits := text[i+1 : min(i+4, len(text))]
			if n, err := strconv.ParseUint(digits, 10, 8); err == nil && len(digits) == 3 {
				joined.WriteByte(byte(n))
				i += 3
				continue
			}
			i++
			joined.WriteByte(text[i])
		}
	}
	if inside {
		return "", errors.New("TXT record: a quote is not closed")
	}
	return joined.String(), nil
}
