// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// A gRPC client in Node, with a service config. Each line of its input is a call, and is answered by a line.
// usage: client.js SERVICE_CONFIG    a line: {"target": "127.0.0.1:1", "method": "/a.B/C", "kind": "unary", "calls": 1}
'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const grpc = require('@grpc/grpc-js');

const config = fs.readFileSync(process.argv[2], 'utf8');
const same = (x) => x;

function call(client, method, kind) {
  const deadline = new Date(Date.now() + 10000);
  return new Promise((resolve) => {
    if (kind === 'unary') {
      client.makeUnaryRequest(method, same, same, Buffer.alloc(0), { deadline }, (error) => resolve(grpc.status[error?.code ?? 0]));
      return;
    }
    const stream = client.makeServerStreamRequest(method, same, same, Buffer.alloc(0), { deadline });
    stream.on('data', () => {});
    stream.on('error', () => {});
    stream.on('status', (status) => resolve(grpc.status[status.code]));
  });
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    const client = new grpc.Client(order.target, grpc.credentials.createInsecure(), {
      'grpc.service_config': config,
      'grpc.enable_retries': 1,
      'grpc.use_local_subchannel_pool': 1,
    });
    const codes = [];
    for (let i = 0; i < order.calls; i++) codes.push(await call(client, order.method, order.kind));
    client.close();
    console.log(JSON.stringify(codes));
  }
}

main();
