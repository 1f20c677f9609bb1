// usage: node client.mjs PORT ROOMS WARM_UP ROUNDS [SERVER_PID]
import { Client } from '@colyseus/sdk';
import { Report, SEATS, settings } from '../report.mjs';

const { port, rooms } = settings();
const report = new Report(settings());
const client = new Client(`ws://127.0.0.1:${port}`);

const sit = (room) => {
  const seat = report.seat();
  room.onMessage('reveal', ({ round }) => seat.revealed(round, () => room.send('grab', { round })));
  room.onMessage('ordered', ({ by }) => { if (by === room.sessionId) seat.ordered(); });
  room.onMessage('resolved', () => {});
};

const firsts = [];
for (let r = 0; r < rooms; r++) {
  const first = await client.create('pillow');
  firsts.push(first);
  sit(first);
  for (let seat = 1; seat < SEATS; seat++) sit(await client.joinById(first.roomId));
}
for (const first of firsts) first.send('start');
