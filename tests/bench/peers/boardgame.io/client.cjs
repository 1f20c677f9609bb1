// usage: node client.cjs PORT ROOMS WARM_UP ROUNDS [SERVER_PID]
const { Client, LobbyClient } = require('boardgame.io/client');
const { SocketIO } = require('boardgame.io/multiplayer');
const { pillow } = require('./game.cjs');

// Socket.IO begins with long polling unless told; each player has a connection of its own.
const socketOpts = { transports: ['websocket'], forceNew: true };

/** Seats a player; resolves when it has the match's state from the server. */
const sit = (client, seat) => new Promise((seated) => {
  let seen = 0, answered = 0;
  client.subscribe((state) => {
    if (!state) return;
    seated();
    const { round, grabbed, resolved } = state.G;
    const order = round > seen ? resolved : grabbed;
    if (seen > answered && order.includes(client.playerID)) {
      answered = seen;
      seat.ordered();
    }
    if (round > seen) {
      seen = round;
      seat.revealed(round, () => client.moves.grab(round));
    }
  });
  client.start();
});

(async () => {
  const { Report, SEATS, settings } = await import('../report.mjs');
  const { port, rooms } = settings();
  const report = new Report(settings());
  const server = `http://127.0.0.1:${port}`;
  const lobby = new LobbyClient({ server });
  const firsts = [];
  for (let r = 0; r < rooms; r++) {
    const { matchID } = await lobby.createMatch('pillow', { numPlayers: SEATS });
    for (let s = 0; s < SEATS; s++) {
      const playerID = String(s);
      const { playerCredentials: credentials } = await lobby.joinMatch('pillow', matchID, { playerID, playerName: playerID });
      const multiplayer = SocketIO({ server, socketOpts });
      const client = Client({ game: pillow, numPlayers: SEATS, matchID, playerID, credentials, multiplayer, debug: false });
      await sit(client, report.seat());
      if (s === 0) firsts.push(client);
    }
  }
  for (const first of firsts) first.moves.start();
})();
