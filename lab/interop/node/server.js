// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// A gRPC server in Node. The metadata of a call say what becomes of each of its attempts.
// usage: server.js PORT RUNS    each handler that runs adds a line to the file RUNS
'use strict';

const fs = require('node:fs');
const grpc = require('@grpc/grpc-js');

const [port, runsFile] = process.argv.slice(2);
const runs = fs.openSync(runsFile, 'a');

// step is what the call's script says of this attempt; its last step holds for all that follow.
function step(call) {
  const script = JSON.parse(call.metadata.get('x-script')[0] ?? '[{}]');
  const previous = Number(call.metadata.get('grpc-previous-rpc-attempts')[0] ?? 0);
  return script[Math.min(previous, script.length - 1)];
}

function carryOut(call, request, write, end) {
  fs.writeSync(runs, Buffer.concat([request, Buffer.from('\n')]));
  const s = step(call);
  if (s.headers) {
    const headers = new grpc.Metadata();
    headers.set('x-here', '1');
    call.sendMetadata(headers);
  }
  setTimeout(() => {
    for (let i = 0; i < (s.messages ?? 0); i++) write(request);
    const trailer = new grpc.Metadata();
    for (const [key, value] of s.trailer ?? []) trailer.add(key, value);
    if (s.details) trailer.set('grpc-status-details-bin', Buffer.from(s.details, 'hex'));
    end(s.code ? { code: s.code, details: 'as the script says', metadata: trailer } : null, trailer);
  }, s.delay ?? 0);
}

function unary(call, callback) {
  carryOut(call, call.request, () => {}, (error, trailer) => callback(error, call.request, trailer));
}

function stream(call) {
  carryOut(call, call.request, (m) => call.write(m), (error, trailer) => (error ? call.emit('error', error) : call.end(trailer)));
}

function many(call, callback) {
  const texts = [];
  call.on('data', (m) => texts.push(m));
  call.on('end', () => {
    const text = Buffer.concat(texts);
    carryOut(call, text, () => {}, (error, trailer) => callback(error, text, trailer));
  });
}

// chat answers message by message; the first that fails ends the stream.
function chat(call) {
  let answered = Promise.resolve();
  let failed = false;
  const answer = (m) =>
    new Promise((resolve) => {
      if (failed) resolve();
      else {
        carryOut(call, m, (out) => call.write(out), (error) => {
          failed = Boolean(error);
          if (failed) call.emit('error', error);
          resolve();
        });
      }
    });
  call.on('data', (m) => {
    answered = answered.then(() => answer(m));
  });
  call.on('end', () => answered.then(() => failed || call.end()));
}

const same = (x) => x;
const method = (name, requestStream, responseStream) => ({
  path: '/interop.v1.OrderService/' + name,
  requestStream,
  responseStream,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
});

const server = new grpc.Server();
server.addService(
  {
    GetOrder: method('GetOrder', false, false),
    CreateOrder: method('CreateOrder', false, false),
    WatchOrders: method('WatchOrders', false, true),
    ImportOrders: method('ImportOrders', true, false),
    Chat: method('Chat', true, true),
  },
  { GetOrder: unary, CreateOrder: unary, WatchOrders: stream, ImportOrders: many, Chat: chat },
);
server.bindAsync('127.0.0.1:' + port, grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});
process.on('SIGTERM', () => server.tryShutdown(() => process.exit(0)));
