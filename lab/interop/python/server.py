# Copyright 2026 The stagger Authors
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server in Python, which is gRPC's C-core, as in C++. It answers a call after so many seconds as the request says.

usage: server.py PORT MIN_PING_INTERVAL_MS    the shortest time between two pings that it allows; 0: gRPC's default
"""

import sys
import time
from concurrent import futures

import grpc
from google.protobuf.wrappers_pb2 import DoubleValue


class Waits(grpc.GenericRpcHandler):
    def service(self, call):
        def answer(request, context):
            time.sleep(request.value)
            return request

        return grpc.unary_unary_rpc_method_handler(
            answer, request_deserializer=DoubleValue.FromString, response_serializer=DoubleValue.SerializeToString
        )


options = [("grpc.so_reuseport", 0)]
if int(sys.argv[2]) > 0:
    options += [("grpc.http2.min_ping_interval_without_data_ms", int(sys.argv[2]))]
server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), handlers=[Waits()], options=options)
server.add_insecure_port("127.0.0.1:" + sys.argv[1])
server.start()
server.wait_for_termination()
