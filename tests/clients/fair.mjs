// What anybody can check of a finished match: that the seed it was played by is the one promised at its start (ALL-03).
import { createHash } from "node:crypto";

/**
 * Prints how a match ended; throws when its record is not what was promised.
 *
 * @param {{ matchId: string, seed: string, commitment: string, moves: unknown[], outcome: { ending: string, winners: number[] } }} record
 * @param {string} commitment the match's, from before its first move
 */
export function checkRecord(record, commitment) {
  const told = createHash("sha256").update(Buffer.from(record.seed, "hex")).digest("hex");
  if (told !== commitment || record.commitment !== commitment) throw new Error(`${record.matchId} was played by another seed than promised`);
  const { ending, winners } = record.outcome;
  console.log(`${record.matchId} ${ending}: ${record.moves.length} moves, won by ${winners.join(", ") || "nobody"}`);
}
