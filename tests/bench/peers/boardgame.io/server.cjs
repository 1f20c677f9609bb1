// usage: node server.cjs PORT
const { Origins, Server } = require('boardgame.io/server');
const { pillow } = require('./game.cjs');

// The port goes to Node's listen() as it is, which takes an address in this form as well.
Server({ games: [pillow], origins: [Origins.LOCALHOST] }).run({ port: { port: Number(process.argv[2]), host: '127.0.0.1' } });
