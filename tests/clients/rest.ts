// Plays a whole match of Night Clan over REST, on types made from the server's own /openapi.json:
//
//   npx openapi-typescript http://127.0.0.1:8080/openapi.json --output openapi.ts
//   npx tsc && node out/rest.js http://127.0.0.1:8080
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import createClient from "openapi-fetch";
import { checkRecord } from "./fair.mjs";
import type { paths } from "./openapi.js";
import { patientFetch } from "./patient.mjs";

const [gateway = "http://127.0.0.1:8080"] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl: gateway, fetch: patientFetch });
// With a key of its own, a POST can be made again when its answer is lost: it is done once.
const once = () => ({ "Idempotency-Key": randomUUID() });

const { data: session, error: notSignedIn } = await api.POST("/v1/players", { params: { header: once() }, body: { name: "Ann" } });
if (!session) throw new Error(notSignedIn.detail);
api.use({ onRequest: ({ request }) => request.headers.set("Authorization", `Bearer ${session.accessToken}`) });

const { data: made, error: notMade } = await api.POST("/v1/matches", {
  params: { header: once() },
  body: { game: "night_clan", options: { variant: "NIGHT" }, seats: [{ player: "me" }, { bot: "STANDARD" }] },
});
if (!made) throw new Error(notMade.detail);
if (made.game !== "night_clan") throw new Error(`asked for night_clan, and got ${made.game}`);
const path = { match_id: made.id };

let cursor = ""; // after the last event seen; the first page begins at the beginning
let finished = false;
while (!finished) {
  const { data: page, error } = await api.GET("/v1/matches/{match_id}/events", { params: { path, query: { after: cursor } } });
  if (typeof page !== "object") throw new Error(error?.detail); // it would be text for who accepts text/event-stream, a stream of events
  for (const { event } of page.events) {
    if ("cardPlayed" in event) console.log(`seat ${event.cardPlayed.seat} plays at ${event.cardPlayed.location}`);
    if ("matchFinished" in event) finished = true;
  }
  cursor = page.nextCursor;
  if (finished || page.more) continue;
  if (!(await move())) await sleep(200);
}

/** Plays one of the moves that are legal now; false when there is none, or others were first. */
async function move(): Promise<boolean> {
  const { data: legal, error } = await api.GET("/v1/matches/{match_id}/moves", { params: { path } });
  if (!legal) throw new Error(error.detail);
  const chosen = legal.moves[Math.floor(Math.random() * legal.moves.length)];
  if (!chosen) return false;
  const { data: played, error: refused } = await api.POST("/v1/matches/{match_id}/moves", {
      params: { path, header: { ...once(), "If-Match": `"${legal.version}"` } },
    body: { move: chosen },
  });
  if (played) return true;
  // `reason` is for programs. Not at that version any more, or another was first: look again.
  if (["VERSION_MISMATCH", "RACED"].includes(refused.reason)) return false;
  throw new Error(`${refused.reason}: ${refused.detail}`);
}

const { data: record, error: notTold } = await api.GET("/v1/matches/{match_id}/record", { params: { path } });
if (!record) throw new Error(notTold.detail);
checkRecord(record, made.commitment);
