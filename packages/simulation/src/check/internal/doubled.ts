/**
 * Copies with a name that may stand for two. The adapter for RabbitMQ replaces a message whose returns the server does not count,
 * before its core receives it, and the replacement has the same name. If the original remains, the name identifies neither: see
 * `handedOut` of the adapter. What processes decide about such a message is at least once, and no more.
 */
import { hasName } from "./law.ts"
import type { CopyLife, DeliveryLife, Lives } from "./Lives.ts"

/** Copies that replace this one, and the one that it replaces. */
const nearestOf = ({ children, parent, stored }: CopyLife): ReadonlyArray<CopyLife> => [
  ...children.filter((each) => each.stored?.entry.replaces === true),
  ...(stored?.entry.replaces === true && parent !== undefined ? [parent.copy] : [])
]

/** The copies with the same name, itself included. */
export const namesakesOf = (copy: CopyLife): ReadonlySet<CopyLife> => {
  const all = new Set([copy])
  // A set goes on with what is added meanwhile.
  for (const each of all) for (const other of nearestOf(each)) all.add(other)
  return all
}

/**
 * Whether a delivery was replaced although its process had received it, or another process had settled the copy. A foreign
 * message has a name only since then.
 */
const isDoubled = (
  { scenario }: Pick<Lives, "scenario">,
  { arrived, back, process }: DeliveryLife,
  copy: CopyLife
): boolean =>
  back?.entry.replaced === true &&
  (arrived !== undefined ||
    !hasName({ scenario }, copy) ||
    copy.deliveries.some((each) => each.process !== process && each.settlings.some(({ index }) => index < back.index)))

/** When a copy became one of two. */
const doubledAt = (lives: Pick<Lives, "scenario">, copy: CopyLife): ReadonlyArray<number> => [
  ...(copy.stored?.entry.replaces === true ? [copy.stored.entry.at] : []),
  ...copy.deliveries.flatMap((each) => (isDoubled(lives, each, copy) ? (each.back?.entry.at ?? []) : []))
]

/** The copies that a process may not recognise, and since when. */
export const doubled = (lives: Pick<Lives, "copies" | "scenario">): ReadonlyMap<CopyLife, number> =>
  new Map(
    [...lives.copies.values()].flatMap((copy) => {
      const times = [...namesakesOf(copy)].flatMap((each) => doubledAt(lives, each))
      return times.length === 0 ? [] : [[copy, Math.min(...times)] as const]
    })
  )
