// Plays a whole match of each game over gRPC, with nothing but the published .proto files, loaded as they are.
//
//   node grpc.mjs PROTO_FOLDER GATEWAY_URL night_clan=HOST:PORT clans_and_glory=HOST:PORT …
//
// Matches are made with HOST_TOKEN, a token of the scope `host` that an operator gives out. Each is played against bots.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { checkRecord } from "./fair.mjs";
import { reaction } from "./knight.mjs";
import { call } from "./patient.mjs";

const [protos, gateway, ...addresses] = process.argv.slice(2);
const session = await call("POST", `${gateway}/v1/players`, { body: { name: "Ann" } });

// The player's access token is good at every game's service too, for some minutes; `players:refresh` buys the next.
const [ann, host] = [session.accessToken, process.env.HOST_TOKEN].map((token) => {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
});

// Every call may be made again: CreateMatch makes a match only where there is none of that id, SubmitMove plays once under a request id.
const CHANNEL = {
  "grpc.service_config": JSON.stringify({
    methodConfig: [
      {
        name: [{}],
        retryPolicy: {
          maxAttempts: 5,
          initialBackoff: "0.25s",
          maxBackoff: "5s",
          backoffMultiplier: 2,
          retryableStatusCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
        },
      },
    ],
  }),
};

/** A game's client; its unary calls are promises. */
function connect(game, address) {
  // The JSON of REST is the same: lowerCamelCase names, enums as words, defaults filled in.
  const definition = loadSync(`gloaming/${game}/v1/${game}.proto`, { includeDirs: [protos], enums: String, defaults: true, oneofs: true });
  const name = game.replace(/(^|_)([a-z])/g, (_, __, letter) => letter.toUpperCase());
  const Service = grpc.loadPackageDefinition(definition).gloaming[game].v1[`${name}Service`];
  const client = new Service(address, grpc.credentials.createInsecure(), CHANNEL);
  for (const verb of ["createMatch", "listMoves", "submitMove", "getRecord"]) client[verb] = promisify(client[verb]);
  return client;
}

/** The match as it is, then every event once and in order, over as many streams as it takes. */
async function* watch(client, matchId) {
  for (let afterCursor = ""; ; await sleep(500)) {
    try {
      for await (const news of client.watchMatch({ matchId, afterCursor }, ann)) {
        afterCursor = (news.snapshot ?? news.event).cursor;
        yield news;
      }
      return; // it ends after the last event
    } catch (error) {
      if (error.code !== grpc.status.UNAVAILABLE) throw error; // the service restarts: go on after the cursor
    }
  }
}

/** Plays in turns: whenever something happens, one of the moves that are legal then. */
async function playInTurns(client, matchId) {
  for await (const _ of watch(client, matchId)) {
    const { moves, version } = await client.listMoves({ matchId }, ann);
    if (!moves.length) continue;
    const move = moves[Math.floor(Math.random() * moves.length)];
    try {
      await client.submitMove({ matchId, move, requestId: randomUUID(), expectedVersion: version }, ann);
    } catch (error) {
      // Against the rules by now, or somebody else moved first: the next event tells.
      if (![grpc.status.FAILED_PRECONDITION, grpc.status.ABORTED].includes(error.code)) throw error;
    }
  }
}

/** Plays in real time: reactions up, events down, over one stream, or as many as it takes. */
async function playInRealTime(client, matchId) {
  let [seat, after, finished] = [undefined, "", false];
  for (; !finished; await sleep(finished ? 0 : 500)) {
    const stream = client.play(ann);
    stream.write({ requestId: randomUUID(), watch: { matchId, after } });
    try {
      for await (const { messages } of stream) {
        for (const { kind, ping, problem, snapshot, event } of messages) {
          if (kind === "ping" && !finished) stream.write({ pong: { nonce: ping.nonce } }); // at once: this is how the line is measured
          if (kind === "problem") console.log(`${problem.reason}: ${problem.detail}`); // a reaction that was too late, say
          if (kind === "snapshot") ({ viewerSeat: seat, cursor: after } = snapshot.match);
          if (kind !== "event") continue;
          after = event.cursor;
          if (event.event.kind === "ownCardShown") {
            const { round, cards } = event.event.ownCardShown;
            stream.write({ requestId: randomUUID(), move: { matchId, move: { react: { round, ...reaction(cards, seat) } } } });
          }
          finished = event.event.kind === "matchFinished";
        }
        if (finished) stream.end(); // all that was asked is answered, and the stream ends
      }
    } catch (error) {
      if (error.code !== grpc.status.UNAVAILABLE) throw error;
    }
  }
}

for (const [game, address] of addresses.map((each) => each.split("="))) {
  const client = connect(game, address);
  const inRealTime = game === "night_knight";
  const seats = [{ player: session.player.id, name: "Ann" }, ...Array(inRealTime ? 2 : 1).fill({ bot: "STANDARD" })];
  const options = inRealTime ? { countdownMs: 100, actionMs: 1500 } : {};
  const { id, commitment } = await client.createMatch({ matchId: `${game}-${randomUUID().replaceAll("-", "")}`, options, seats }, host);
  await (inRealTime ? playInRealTime : playInTurns)(client, id);
  checkRecord(await client.getRecord({ matchId: id }, ann), commitment);
  client.close();
}
