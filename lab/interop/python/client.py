# Copyright 2026 The stagger Authors
# SPDX-License-Identifier: Apache-2.0
"""A gRPC client in Python, with a service config. Each line of its input is a call, and is answered by a line.

usage: client.py SERVICE_CONFIG    a line: {"target": "127.0.0.1:1", "method": "/a.B/C", "kind": "unary", "calls": 1}
"""

import json
import sys

import grpc

with open(sys.argv[1], encoding="utf-8") as f:
    config = f.read()


def call(channel, method, kind):
    try:
        if kind == "unary":
            channel.unary_unary(method)(b"", timeout=10)
        else:
            list(channel.unary_stream(method)(b"", timeout=10))
    except grpc.RpcError as e:
        return e.code().name
    return "OK"


for line in sys.stdin:
    order = json.loads(line)
    options = [("grpc.service_config", config), ("grpc.enable_retries", 1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(order["target"], options=options) as c:
        codes = [call(c, order["method"], order["kind"]) for _ in range(order["calls"])]
    print(json.dumps(codes), flush=True)
