// Plays a whole match of Night Knight over the live socket in protobuf, with nothing but the published .proto files, loaded as they are.
//
//   node binary.mjs PROTO_FOLDER GATEWAY_URL
import { randomUUID } from "node:crypto";
import { on } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import protobuf from "protobufjs";
import WebSocket from "ws";
import { checkRecord } from "./fair.mjs";
import { reaction } from "./knight.mjs";
import { call } from "./patient.mjs";

const [protos, gateway] = process.argv.slice(2);

const DESCRIPTOR = "google/protobuf/descriptor.proto"; // the one of Google's files that the library knows and does not find by itself
const root = new protobuf.Root();
root.resolvePath = (_, name) => (name === DESCRIPTOR ? createRequire(import.meta.url).resolve(`protobufjs/${DESCRIPTOR}`) : join(protos, name));
await root.load(["gloaming/live/v1/live.proto", "gloaming/night_knight/v1/night_knight.proto"]);
const [ClientFrame, ServerFrame] = ["ClientFrame", "ServerFrame"].map((name) => root.lookupType(`gloaming.live.v1.${name}`));
// A frame carries messages of the match's game as bytes: where live.proto says `of_game`, they are these.
const [Match, Move, Event] = ["Match", "Move", "Event"].map((name) => root.lookupType(`gloaming.night_knight.v1.${name}`));

const encode = (type, value) => type.encode(type.fromObject(value)).finish();
const decode = (type, bytes) => type.toObject(type.decode(bytes), { enums: String, defaults: true, arrays: true, oneofs: true });

const { player, accessToken: token } = await call("POST", `${gateway}/v1/players`, { body: { name: "Ann" } });
const seats = [{ player: "me" }, { bot: "STANDARD" }, { bot: "STANDARD" }];
const options = { countdownMs: 100, actionMs: 1500, ordering: "COMPENSATED" };
const match = await call("POST", `${gateway}/v1/matches`, { token, body: { game: "night_knight", options, seats } });
const seat = match.seats.find((each) => each.player === player.id).seat;

let cursor = ""; // the last seen: after a broken connection, `watch` goes on from there without a gap or a repeat
const unanswered = new Map(); // requests without a result, by their ids: to be sent again under the same ids
let finished = false;

while (!finished) {
  // Where no header can be set, as in a browser, the token goes beside the subprotocol; it is never echoed.
  const socket = new WebSocket(`${gateway.replace(/^http/, "ws")}/v1/live`, ["gloaming.v1.proto", `bearer.${token}`]);
  const send = (frame) => socket.readyState === WebSocket.OPEN && socket.send(encode(ClientFrame, frame));
  const ask = (frame) => {
    const request = { requestId: randomUUID(), ...frame };
    unanswered.set(request.requestId, request);
    send(request);
  };
  socket.on("open", () => {
    send({ requestId: randomUUID(), watch: { matchId: match.id, after: cursor } });
    for (const request of unanswered.values()) send(request);
  });
  let code;
  socket.on("close", (closed) => (code = closed));
  try {
    for await (const [data] of on(socket, "message", { close: ["close"] })) {
      for (const message of decode(ServerFrame, data).messages) take(message, send, ask);
      if (finished) socket.close(1000);
    }
  } catch (error) {
    console.log(`${error.message}, and so once more in 1 s`);
  }
  if (code === 1008) throw new Error("the token is not good any more"); // POST /v1/players:refresh buys the next
  if (!finished) await sleep(1000);
}

function take({ kind, ping, result, problem, snapshot, event }, send, ask) {
  if (kind === "ping") send({ pong: { nonce: ping.nonce } }); // at once: this is how the line is measured
  if (kind === "result") unanswered.delete(result.requestId);
  if (kind === "problem") {
    console.log(`${problem.reason}: ${problem.detail}`); // ROUND_OVER: one was too late. Limited: it says `retryAfter`, when it is too late
    unanswered.delete(problem.requestId);
  }
  if (kind === "snapshot") cursor = decode(Match, snapshot.match).cursor;
  if (kind !== "event") return;
  cursor = event.cursor;
  const happened = decode(Event, event.event);
  if (happened.kind === "ownCardShown") {
    const { round, cards } = happened.ownCardShown;
    ask({ move: { matchId: match.id, move: encode(Move, { react: { round, ...reaction(cards, seat) } }) } });
  }
  finished = happened.kind === "matchFinished";
}

checkRecord(await call("GET", `${gateway}/v1/matches/${match.id}/record`, { token }), match.commitment);
