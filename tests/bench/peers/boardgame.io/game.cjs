// The rounds as a boardgame.io game: every seat may grab once a round; the last grab resolves it and reveals the next.
// Two savings that the library offers are used: a move is not played on the client first, and nothing is kept for undoing.
const { ActivePlayers } = require('boardgame.io/core');

const SEATS = 4;

exports.pillow = {
  name: 'pillow',
  setup: () => ({ round: 0, grabbed: [], resolved: [] }),
  turn: { activePlayers: ActivePlayers.ALL },
  moves: {
    // Opens the first round when all four are there: the library starts a match with its first seat.
    start: {
      client: false,
      ignoreStaleStateID: true,
      move: ({ G }) => { if (G.round === 0) G.round = 1; },
    },
    grab: {
      client: false,
      // The four grab at once: only the first would hold the current state's number.
      ignoreStaleStateID: true,
      move: ({ G, playerID }, round) => {
        if (round !== G.round || G.grabbed.includes(playerID)) return;
        G.grabbed.push(playerID);
        if (G.grabbed.length < SEATS) return;
        G.resolved = G.grabbed;
        G.grabbed = [];
        G.round++;
      },
    },
  },
  disableUndo: true,
};
