// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const work = 10 * time.Millisecond // of a request

// The orders that the process of the servers gets on its input, one a line. Each is answered by a line.
const (
	orderStart = "start"
	orderDrop  = "drop" // an address follows
	orderKeep  = "keep" // an address follows
	orderPause = "pause"
	orderWake  = "wake"
)

// runServers carries out orders until its input ends.
func runServers() error {
	var paused *exec.Cmd
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		var err error
		switch order, address, _ := strings.Cut(orders.Text(), " "); order {
		case orderStart:
			if err = connectServers(); err == nil {
				paused, err = startServers()
			}
		case orderDrop:
			err = drop(address)
		case orderKeep:
			err = keep(address)
		case orderPause:
			err = paused.Process.Signal(syscall.SIGSTOP)
		case orderWake:
			err = paused.Process.Signal(syscall.SIGCONT)
		default:
			err = fmt.Errorf("unknown order %q", order)
		}
		if err != nil {
			return err
		}
		fmt.Println()
	}
	return orders.Err()
}

// startServers listens at all addresses: at that of the server that is paused, in a process of its own.
func startServers() (paused *exec.Cmd, err error) {
	for _, a := range addresses {
		if a == pausing {
			continue
		}
		if _, err = listen(a); err != nil {
			return nil, err
		}
	}
	paused = process(rolePaused, 0)
	paused.Stdout = nil
	said, err := paused.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err = paused.Start(); err != nil {
		return nil, err
	}
	_, err = bufio.NewReader(said).ReadString('\n')
	return paused, err
}

// runPaused is the process that is paused. It says when it listens.
func runPaused() error {
	served, err := listen(pausing)
	if err != nil {
		return err
	}
	fmt.Println()
	return <-served
}

// listen serves at an address, and sends the error when that ends.
func listen(address string) (served chan error, err error) {
	lis, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, err
	}
	served = make(chan error, 1)
	server := grpc.NewServer(grpc.UnknownServiceHandler(handle))
	go func() { served <- server.Serve(lis) }()
	return served, nil
}

// handle answers a call.
func handle(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
		return err
	}
	time.Sleep(work)
	return stream.SendMsg(new(wrapperspb.BytesValue))
}

// servers are the process of the servers, as the client sees it.
type servers struct {
	orders io.WriteCloser
	done   *bufio.Reader
}

// order gives an order, and waits until it is carried out.
func (s *servers) order(what string) error {
	if _, err := fmt.Fprintln(s.orders, what); err != nil {
		return err
	}
	if _, err := s.done.ReadString('\n'); err != nil {
		return fmt.Errorf("the servers did not %s: %w", what, err)
	}
	return nil
}

// stop ends the process.
func (s *servers) stop() { _ = s.orders.Close() }

// newServers starts the process of the servers, in a network namespace of its own.
func newServers() (*servers, error) {
	cmd := process(roleServers, syscall.CLONE_NEWNET)
	cmd.Stdout = nil
	done, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := connectClient(cmd.Process.Pid); err != nil {
		return nil, err
	}
	s := &servers{orders, bufio.NewReader(done)}
	return s, s.order(orderStart)
}
