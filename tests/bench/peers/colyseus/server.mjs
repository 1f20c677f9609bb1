// usage: node server.mjs PORT
// A Colyseus room of four whose rounds follow each other as fast as they can.
import { Room, Server } from '@colyseus/core';
import { WebSocketTransport } from '@colyseus/ws-transport';

const SEATS = 4;

class PillowRoom extends Room {
  maxClients = SEATS;
  round = 0;
  grabbed = new Set();

  onCreate() {
    this.onMessage('start', () => {
      if (this.round === 0 && this.clients.length === SEATS) this.reveal();
    });
    this.onMessage('grab', (client, { round }) => {
      if (round !== this.round || this.grabbed.has(client.sessionId)) return;
      this.grabbed.add(client.sessionId);
      this.broadcast('ordered', { round, rank: this.grabbed.size, by: client.sessionId });
      if (this.grabbed.size < SEATS) return;
      this.broadcast('resolved', { round });
      this.reveal();
    });
  }

  reveal() {
    this.grabbed.clear();
    this.broadcast('reveal', { round: ++this.round });
  }
}

const server = new Server({ transport: new WebSocketTransport({}) });
server.define('pillow', PillowRoom);
await server.listen(Number(process.argv[2]), '127.0.0.1');
