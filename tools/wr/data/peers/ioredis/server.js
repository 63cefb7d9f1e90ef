// SPDX-License-Identifier: Apache-2.0
// S4: a server that asks Redis for each request, with ioredis. node server.js PORT REDIS_PORT
const Redis = require('ioredis');
const [port, redisPort] = process.argv.slice(2).map(Number);
const redis = new Redis(redisPort, '127.0.0.1');

const server = require('http').createServer(async (request, response) => {
    if (request.url !== '/value/') {
        response.writeHead(404, { 'content-length': 0 });
        response.end();
        return;
    }
    try {
        const value = await redis.getBuffer('value');
        response.writeHead(200, { 'content-length': value.length });
        response.end(value);
    } catch (error) {
        response.writeHead(503, { 'content-length': 0 });
        response.end();
    }
});
server.keepAliveTimeout = 65000;
server.on('error', () => process.exit(1));
server.listen(port, '127.0.0.1', 1024);
