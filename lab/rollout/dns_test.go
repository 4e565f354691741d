// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// records is a DNS server with the addresses of one Service. Its answers may not be cached.
type records struct {
	mu  sync.Mutex
	ips []string
}

func (r *records) add(ip string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ips = append(r.ips, ip)
}

func (r *records) remove(ip string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ips = slices.DeleteFunc(r.ips, func(other string) bool { return other == ip })
}

// dial is the Dial of a net.Resolver: a connection in memory, which is spoken to as over TCP.
func (r *records) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go r.serve(server)
	return client, nil
}

func (r *records) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		answer, err := r.answer(question)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer returns the addresses, or nothing for other questions than those for IPv4.
func (r *records) answer(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA && q.Name.String() == service {
		for _, ip := range r.ips {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: netip.MustParseAddr(ip).As4()},
			})
		}
	}
	return m.Pack()
}
