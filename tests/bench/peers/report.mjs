// What both clients share: when a player may grab, what is counted, and the one line of JSON that says it.
import { readFileSync } from 'node:fs';

export const SEATS = 4;

/** PORT ROOMS WARM_UP ROUNDS [SERVER_PID], as the runner gives them; rounds are each room's. */
export function settings() {
  const [port, rooms, warmUp, rounds, serverPid] = process.argv.slice(2).map(Number);
  return { port, rooms, warmUp, rounds, serverPid };
}

/**
 * Every player tells its seat's `revealed` and `ordered`. Rounds up to `warmUp` are played and not counted: compilers and caches warm up.
 * Then all players wait for the last one, so that the clock starts once for all and nobody's set-up falls into another's count.
 */
export class Report {
  #settings;
  #latencies = [];
  #waiting = [];
  #finished = 0;
  #began;

  constructor(settings) {
    this.#settings = settings;
  }

  seat() {
    const { warmUp, rounds } = this.#settings;
    let current = 0, sent;
    return {
      revealed: (round, grab) => {
        current = round;
        if (round > warmUp + rounds) return this.#finish();
        const send = () => { sent = performance.now(); grab(); };
        if (round === warmUp + 1) this.#wait(send);
        else send();
      },
      ordered: () => {
        if (current > warmUp) this.#latencies.push(performance.now() - sent);
      },
    };
  }

  get #players() {
    return this.#settings.rooms * SEATS;
  }

  #wait(send) {
    if (this.#waiting.push(send) < this.#players) return;
    this.#began = this.#clocks();
    for (const go of this.#waiting) go();
  }

  #finish() {
    if (++this.#finished < this.#players) return;
    const ended = this.#clocks();
    const took = (clock) => (ended[clock] === null ? null : Math.round(ended[clock] - this.#began[clock]));
    const sorted = this.#latencies.sort((a, b) => a - b);
    const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
    const line = { grabs: sorted.length, ms: took('wall'), p50Ms: at(0.5), p99Ms: at(0.99), clientCpuMs: took('client'), serverCpuMs: took('server') };
    process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0));
  }

  #clocks() {
    const { user, system } = process.cpuUsage();
    return { wall: performance.now(), client: (user + system) / 1000, server: cpuOf(this.#settings.serverPid) };
  }
}

/** The CPU time of another process in ms, or null where there is no /proc. */
function cpuOf(pid) {
  try {
    // The name, in parentheses, may hold spaces; utime and stime are the 12th and 13th fields after it, in hundredths of a second.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}
