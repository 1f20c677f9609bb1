// Checks what a seed decides, with nothing of the server's: written from the derivation that services/kit/chance.py and RULES.md describe.
//   node verify_record.mjs record.json            the commitment, the seating, and where this file knows the decks: that every hand held
//   node verify_record.mjs --vectors vectors.json that the derivation gives what the vectors say
import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

function* words(seed, label) {
  for (let counter = 0; ; counter++) {
    const tail = Buffer.alloc(5); // the 0x00 after the label, then the counter
    tail.writeUInt32BE(counter, 1);
    const block = createHmac("sha256", seed).update(label, "utf8").update(tail).digest();
    for (let at = 0; at < block.length; at += 4) yield block.readUInt32BE(at);
  }
}

function below(n, stream) {
  const end = 2 ** 32 - (2 ** 32 % n);
  for (;;) {
    const { value } = stream.next();
    if (value < end) return value % n;
  }
}

function shuffle(seed, label, items) {
  const [stream, list] = [words(seed, label), [...items]];
  for (let i = list.length - 1; i > 0; i--) {
    const j = below(i + 1, stream);
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

function same(what, found, told) {
  if (JSON.stringify(found) !== JSON.stringify(told)) throw new Error(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(told)}`);
  console.log(`ok    ${what}`);
}

// Each draws what the moves need from the seed alone, and says when a move needs a card that was not drawn.
const DECKS = {
  night_clan(seed, record) {
    const whole = ["TROLL", "MISTLETOE", "RICHES", "RICHES", ...Array(7).fill("DAUGHTER"), "NIGHT_WATCH", "NIGHT_WATCH"];
    const seats = record.seats.map((_, seat) => ({ label: `deck/${seat}`, redraws: 0, played: 0, deck: shuffle(seed, `deck/${seat}`, whole) }));
    for (const seat of seats) seat.hand = seat.deck.splice(0, 3);
    for (const { played, move } of record.moves) {
      const seat = seats[played.seat ?? 0];
      if (move?.mulligan) {
        if (seat.hand.filter((card) => card === "NIGHT_WATCH").length < 2) throw new Error("a mulligan of a hand without two Night Watch");
        seat.deck = shuffle(seed, `${seat.label}/${++seat.redraws}`, whole);
        seat.hand = seat.deck.splice(0, 3);
      } else if (move?.play) {
        const at = seat.hand.indexOf(move.play.card);
        if (at < 0) throw new Error(`seat ${played.seat ?? 0} played ${move.play.card} and held ${seat.hand}`);
        seat.hand.splice(at, 1);
        if (++seat.played % 2 === 0) seat.hand.push(...seat.deck.splice(0, 2));
      }
    }
    console.log("ok    every card played was in hand");
  },
};

function check(record) {
  const seed = Buffer.from(record.seed, "hex");
  same("commitment", createHash("sha256").update(seed).digest("hex"), record.commitment);
  const order = record.order === "AS_LISTED" ? record.listed : shuffle(seed, "seating", record.listed);
  const who = (seat) => seat.player || seat.bot;
  same("seating", order.map(who), record.seats.map(who));
  DECKS[record.game]?.(seed, record);
}

function checkVectors({ streams, below: draws, shuffles }) {
  const hex = (values) => values.map((word) => word.toString(16).padStart(8, "0")).join("");
  for (const { seed, label, bytes } of streams) {
    const stream = words(Buffer.from(seed, "hex"), label);
    same(`stream ${label}`, hex(Array.from({ length: bytes.length / 8 }, () => stream.next().value)), bytes);
  }
  for (const { n, words: given, gives } of draws) same(`below ${n}`, below(n, given.values()), gives);
  for (const { seed, label, items, gives } of shuffles) same(`shuffle ${label}`, shuffle(Buffer.from(seed, "hex"), label, items), gives);
}

const [kind, path] = process.argv.slice(2);
if (kind === "--vectors") checkVectors(JSON.parse(readFileSync(path, "utf8")));
else check(JSON.parse(readFileSync(kind, "utf8")));
