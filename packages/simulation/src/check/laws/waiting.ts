import { describe } from "../internal/Allowed.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { Lives, Settling } from "../internal/Lives.ts"

/** Milliseconds within which a settlement is requested again if the broker accepts all: longer than all pauses. */
const longest = 600_000

/** When it must have been requested again; `undefined` if its process has ended by then, or need not. */
const dueOf = ({ calm, end, history }: Lives, { answer, fate, of: { process } }: Settling): number | undefined => {
  const answered = history[answer]
  if (calm === undefined || answered === undefined || (fate !== "transient" && fate !== "unknown")) return undefined
  const due = Math.max(answered.at, calm.entry.at) + longest
  const last = process.draining ?? process.killed ?? end
  return last !== undefined && last.entry.at > due ? due : undefined
}

/** Whether it became obsolete: its delivery is lost, or a later one is handled separately. */
const isOver = ({ history }: Lives, { of: life }: Settling, due: number): boolean => {
  const { back, copy, disconnected, process } = life
  return (
    (history[disconnected]?.at ?? Infinity) < due ||
    (back !== undefined && back.entry.why !== "asked" && back.entry.at < due) ||
    process.deliveries
      .slice(process.deliveries.indexOf(life) + 1)
      .some((each) => each.copy === copy && (each.arrived?.entry.at ?? Infinity) < due)
  )
}

/** A settlement that the broker could not accept is requested again once the broker can. */
export const waiting: Law = (lives) =>
  [...lives.deliveries.values()].flatMap((life) =>
    life.settlings.flatMap((settling, nth) => {
      const due = dueOf(lives, settling)
      if (life.process.version === undefined || due === undefined || isOver(lives, settling, due)) return []
      if ((life.settlings[nth + 1]?.at ?? Infinity) < due) return []
      const what = `${life.process.name} asked for ${describe(settling.asked)}, which the broker could not take; expected it again within ${longest} ms.`
      return [violation("waiting", due, of(life), what, [settling.index, settling.answer])]
    })
  )
