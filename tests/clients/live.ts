// Plays a whole match of Clans and Glory over the live socket in JSON, on types made from the server's own /openapi.json (see rest.ts):
//
//   npx tsc && node out/live.js http://127.0.0.1:8080
//
// It cuts its own connection once, in the middle of a move, and shows at the end that it missed nothing and played nothing twice.
import { randomUUID } from "node:crypto";
import { on } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import createClient from "openapi-fetch";
import WebSocket from "ws"; // browsers, and Node from 22, have one built in
import { checkRecord } from "./fair.mjs";
import type { components, paths } from "./openapi.js";
import { patientFetch } from "./patient.mjs";

type ClientFrame = components["schemas"]["LiveClientFrame"];
type ServerFrame = components["schemas"]["LiveServerFrame"];

const [gateway = "http://127.0.0.1:8080"] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl: gateway, fetch: patientFetch });
const once = () => ({ "Idempotency-Key": randomUUID() });

const { data: session, error: notSignedIn } = await api.POST("/v1/players", { params: { header: once() }, body: { name: "Ann" } });
if (!session) throw new Error(notSignedIn.detail);
const token = session.accessToken;
api.use({ onRequest: ({ request }) => request.headers.set("Authorization", `Bearer ${token}`) });
const { data: match, error: notMade } = await api.POST("/v1/matches", {
  params: { header: once() },
  body: { game: "clans_and_glory", seats: [{ player: "me" }, { bot: "STANDARD" }] },
});
if (!match) throw new Error(notMade.detail);
const path = { match_id: match.id };

let cursor = match.cursor; // after the last event seen: `watch` goes on from there without a gap or a repeat
const seen: string[] = []; // the cursor of every event, in the order in which they came
let asked: ClientFrame | undefined; // a move without an answer: sent again under its requestId it is still played once
let finished = false;
let cut = false;

while (!finished) {
  const socket = new WebSocket(`${gateway.replace(/^http/, "ws")}/v1/live`, ["gloaming.v1.json", `bearer.${token}`]);
  const send = (frame: ClientFrame) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame));
  socket.on("open", () => {
    send({ requestId: randomUUID(), watch: { matchId: match.id, after: cursor } });
    if (asked) send(asked);
  });
  let code = 0;
  socket.on("close", (closed) => (code = closed));
  try {
    for await (const [text] of on(socket, "message", { close: ["close"] })) {
      for (const message of (JSON.parse(String(text)) as ServerFrame).messages) {
        if ("ping" in message) send({ pong: message.ping }); // at once, or the server takes the connection for dead
        if ("snapshot" in message) cursor = message.snapshot.match.cursor; // only where the cursor was not this match's
        if ("event" in message) {
          cursor = message.event.cursor;
          seen.push(cursor);
          finished = "matchFinished" in message.event.event;
        }
        if ("result" in message && message.result.requestId === asked?.requestId) asked = undefined;
        if ("problem" in message) {
          const { requestId, reason, detail, retryAfter } = message.problem;
          console.log(`${reason}: ${detail}`);
          if (requestId !== asked?.requestId) continue;
          if (retryAfter === undefined) asked = undefined; // against the rules by now
          else setTimeout(() => asked && send(asked), 1000 * retryAfter); // too much, or not now: the same once more
        }
      }
      if (finished) socket.close(1000);
      else if (!asked && (asked = await choose())) {
        send(asked);
        if (seen.length > 5 && !cut) {
          cut = true;
          socket.terminate(); // what a bad line does
        }
      }
    }
  } catch (error) {
    console.log(`${error}`);
  }
  if (code === 1008) throw new Error("the token is not good any more"); // POST /v1/players:refresh buys the next
  if (!finished) await sleep(250);
}

/** The request for one of the moves that are legal now, if there are any. */
async function choose(): Promise<ClientFrame | undefined> {
  const { data: legal, error } = await api.GET("/v1/matches/{match_id}/moves", { params: { path } });
  if (!legal) throw new Error(error.detail);
  const move = legal.moves[Math.floor(Math.random() * legal.moves.length)];
  return move && { requestId: randomUUID(), move: { matchId: path.match_id, move, expectedVersion: legal.version } };
}

const { data: page, error: notListed } = await api.GET("/v1/matches/{match_id}/events", {
  params: { path, query: { after: match.cursor, pageSize: 500 } },
});
if (typeof page !== "object") throw new Error(notListed?.detail);
if (page.events.map((each) => each.cursor).join() !== seen.join()) throw new Error("the socket told something else than REST does");
console.log(`${seen.length} events, each once, over a connection that ${cut ? "was cut" : "held"}`);

const { data: record, error: notTold } = await api.GET("/v1/matches/{match_id}/record", { params: { path } });
if (!record) throw new Error(notTold.detail);
checkRecord(record, match.commitment);
