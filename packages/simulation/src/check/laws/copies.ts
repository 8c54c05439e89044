import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"

/** The copy that a settlement stores goes to the requested queue, with the requested reason, and records what it leaves out. */
export const copies: Law = (lives) =>
  [...lives.copies.values()].flatMap((copy) => {
    const { parent, stored } = copy
    if (parent === undefined || stored === undefined || !isWork(lives, parent)) return []
    const { cut, queue, reason, replaces } = stored.entry
    // It serves no settlement.
    if (replaces === true) return []
    const home = parent.copy.stored?.entry.queue
    const asked = parent.settlings.filter(({ index }) => index < stored.index)
    const fits = asked.some(
      ({ asked: each }) =>
        cut >= each.cut &&
        (each.tag === "DeadLetter"
          ? (each.queue === undefined || each.queue === queue) && (reason === undefined || reason === each.reason)
          : (each.tag === "Retry" || each.tag === "Release") && queue === home)
    )
    // A client that ends returns what it holds.
    const { draining } = parent.process
    const isReturned = queue === home && draining !== undefined && draining.index < stored.index
    if (fits || isReturned) return []
    const wanted =
      asked.length === 0 ? "nothing, as nothing was asked" : asked.map((each) => describe(each.asked)).join(" or ")
    const what = `A copy was stored in ${queue}${reason === undefined ? "" : ` as ${reason}`}, which says that it leaves out ${cut}; expected ${wanted}.`
    return [violation("copies", stored.entry.at, of(parent), what, [...asked.map(({ index }) => index), stored.index])]
  })
