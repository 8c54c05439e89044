import { type Law, violation } from "../internal/law.ts"
import type { CopyLife } from "../internal/Lives.ts"

const isThere = ({ gone, stored }: CopyLife, index: number): boolean =>
  stored !== undefined && stored.index < index && (gone === undefined || gone.index > index)

/** A power cut loses no message whose send was confirmed: at most it undoes settlements. */
export const durability: Law = ({ history, keys }) => {
  const lost = new Map<number, number>()
  return history.flatMap((entry, index) => {
    if (entry._tag === "Gone" && entry.why === "forgotten") lost.set(entry.key, index)
    if (entry._tag !== "Rebooted") return []
    const found = [...lost].flatMap(([key, gone]) => {
      const { copies, sent } = keys.get(key)!
      if (sent === undefined || sent.index > index || copies.some((copy) => isThere(copy, index))) return []
      const what = "A power cut lost the message, whose send was confirmed; expected a copy of it."
      return [violation("durability", entry.at, { key }, what, [sent.index, gone, index])]
    })
    lost.clear()
    return found
  })
}
