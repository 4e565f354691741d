# Copyright 2026 The stagger Authors
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server in Python. The metadata of a call say what becomes of each of its attempts.

usage: server.py PORT RUNS    each handler that runs adds a line to the file RUNS
"""

import concurrent.futures
import json
import signal
import sys
import threading
import time

import grpc

CODES = {code.value[0]: code for code in grpc.StatusCode}
port, runs = sys.argv[1], open(sys.argv[2], "ab", buffering=0)


def step(context):
    """What the call's script says of this attempt; its last step holds for all that follow."""
    metadata = dict(context.invocation_metadata())
    script = json.loads(metadata.get("x-script", "[{}]"))
    return script[min(int(metadata.get("grpc-previous-rpc-attempts", "0")), len(script) - 1)]


def carry_out(request, context):
    runs.write(request + b"\n")
    s = step(context)
    if "headers" in s:
        context.send_initial_metadata((("x-here", "1"),))
    time.sleep(s.get("delay", 0) / 1000)
    for _ in range(s.get("messages", 0)):
        yield request
    trailer = [tuple(pair) for pair in s.get("trailer", [])]
    if "details" in s:
        trailer.append(("grpc-status-details-bin", bytes.fromhex(s["details"])))
    context.set_trailing_metadata(tuple(trailer))
    if s.get("code", 0) != 0:
        context.abort(CODES[s["code"]], "as the script says")


def unary(request, context):
    list(carry_out(request, context))
    return request


def many(requests, context):
    texts = b"".join(requests)
    list(carry_out(texts, context))
    return texts


def chat(requests, context):
    for request in requests:
        yield from carry_out(request, context)


HANDLERS = {
    "GetOrder": grpc.unary_unary_rpc_method_handler(unary),
    "CreateOrder": grpc.unary_unary_rpc_method_handler(unary),
    "WatchOrders": grpc.unary_stream_rpc_method_handler(carry_out),
    "ImportOrders": grpc.stream_unary_rpc_method_handler(many),
    "Chat": grpc.stream_stream_rpc_method_handler(chat),
}


class Orders(grpc.GenericRpcHandler):
    def service(self, call):
        return HANDLERS.get(call.method.rsplit("/", 1)[1])


server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=64), handlers=(Orders(),), options=[("grpc.so_reuseport", 0)])
server.add_insecure_port("127.0.0.1:" + port)
server.start()
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
stop.wait()
server.stop(5).wait()
