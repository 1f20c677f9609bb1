// What every client of the gateway does: it tries again where that may help, and plays nothing twice by it.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const TRIES = 8;

/**
 * `fetch`, but one that waits as long as `Retry-After` says after a 429 (too much) or a 503 (not now), and calls again when the line
 * breaks. A POST must have an `Idempotency-Key`: under the same key the server does a thing once and gives the first answer again.
 *
 * @param {Request} request
 * @returns {Promise<Response>}
 */
export async function patientFetch(request) {
  for (let left = TRIES, pause = 250; ; left--, pause = Math.min(2 * pause, 5000)) {
    try {
      const response = await fetch(request.clone());
      if (![429, 503].includes(response.status) || left === 0) return response;
      console.log(`${response.status}, and so once more in ${response.headers.get("Retry-After")} s`);
      await sleep(1000 * Number(response.headers.get("Retry-After") ?? 1));
    } catch (broken) {
      if (left === 0) throw broken;
      await sleep(pause);
    }
  }
}

/**
 * One call and its answer, for those who need no types.
 *
 * @param {string} method
 * @param {string} url
 * @param {{ token?: string, body?: unknown }} [given]
 * @returns {Promise<any>}
 */
export async function call(method, url, { token, body } = {}) {
  const headers = new Headers({ "Content-Type": "application/json" });
  if (token) headers.set("Authorization", `Bearer ${token}`);
  if (method === "POST") headers.set("Idempotency-Key", randomUUID());
  const response = await patientFetch(new Request(url, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }));
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.reason}: ${answer.detail}`); // application/problem+json (RFC 9457)
  return answer;
}
