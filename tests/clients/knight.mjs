// What to do at a reveal of Night Knight (NK-06 to NK-09), as `gloaming.night_knight.v1.React` without its round.

/**
 * @param {{ seat: number, card: string }[]} cards all that were revealed
 * @param {number} seat one's own
 * @returns {{ action: string, target?: number }}
 */
export function reaction(cards, seat) {
  const mine = cards.find((each) => each.seat === seat)?.card;
  const others = (kind) => cards.find((each) => each.card === kind && each.seat !== seat);
  if (others("KING_OF_SILENCE")) return { action: "PASS" };
  if (mine === "SLEEPING_DRAGON") return { action: "SLEEP" };
  if (mine === "DEFENDING_KNIGHT" && others("ATTACKING_KNIGHT")) return { action: "SHIELD" };
  const knight = mine === "ATTACKING_KNIGHT" && others("DEFENDING_KNIGHT");
  return knight ? { action: "THROW", target: knight.seat } : { action: "PASS" };
}
