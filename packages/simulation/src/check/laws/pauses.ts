import { describe } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, Lives, Settling } from "../internal/Lives.ts"
import { slack } from "../internal/timing.ts"
import type { Violation } from "../Violation.ts"

/** Milliseconds until a refused settlement is tried again: each time twice as long, up to the maximum. */
const waits = { first: 1000, longest: 60_000 }

/** Milliseconds for which extensions, gates and timeouts may hold up a repeated settlement. */
const grace = 120_000

/**
 * Whether another settlement is requested because all copies of the previous one were refused: it leaves out no more than that
 * did.
 */
const isAnew = ({ asked: before }: Settling, { asked }: Settling): boolean => asked.cut <= before.cut

/** Whether its process keeps the delay of a message whose copy is refused: then the pause is that delay. */
const hasDelay = ({ asked }: Settling): boolean => asked.delay > 0

/** Settlements that are tried again too early. */
const hammered = ({ history }: Lives, life: DeliveryLife): ReadonlyArray<Violation> => {
  const { process, settlings } = life
  let pause = waits.first
  return settlings.flatMap((settling, nth) => {
    const before = settlings[nth - 1]
    if (before?.fate !== "rejected" || before.answer > settling.index) return []
    if (hasDelay(before) || !isAnew(before, settling)) return []
    // A waiting settlement may be requested once more when its process ends.
    if (process.draining !== undefined && process.draining.index < settling.index) return []
    const expected = pause
    pause = Math.min(2 * pause, waits.longest)
    const since = history[before.answer]?.at ?? before.at
    if (process.clock.most(since, settling.at) >= expected - slack) return []
    const what = `${process.name} asked for ${describe(settling.asked)} ${Math.round(settling.at - since)} ms after it was refused; expected a pause of ${expected} ms.`
    return [violation("pauses", settling.at, of(life), what, [before.index, before.answer, settling.index])]
  })
}

/** A settlement that is refused, and never tried again. */
const forgotten = ({ history }: Lives, life: DeliveryLife): ReadonlyArray<Violation> => {
  const { back, copy, disconnected, process, settlings } = life
  const last = settlings.at(-1)
  if (last?.fate !== "rejected") return []
  const pause = hasDelay(last) ? last.asked.delay : waits.longest
  const since = history[last.answer]?.at ?? last.at
  const stood = process.frozen.reduce((sum, { entry }) => sum + entry.until - entry.at, 0)
  const due = since + pause / (process.plan?.clock.speed ?? 1) + stood + grace
  const ends = [process.draining, process.killed, back, copy.gone].map((each) => each?.entry.at ?? Infinity)
  // A later delivery of the copy is handled instead.
  const isLost =
    disconnected >= 0 || process.deliveries.some((each) => each.copy === copy && each.delivery > life.delivery)
  if (isLost || Math.min(history.at(-1)?.at ?? 0, ...ends) <= due) return []
  const what = `${process.name} asked for ${describe(last.asked)}, which was refused; expected it to be tried again by ${Math.round(due)} ms.`
  return [violation("pauses", due, of(life), what, [last.index, last.answer])]
}

/**
 * A settlement that the broker refuses is tried again after pauses that grow from a second to a minute: never earlier, and not
 * never.
 */
export const pauses: Law = (lives) =>
  [...lives.deliveries.values()].flatMap((life) =>
    isWork(lives, life) && life.process.version !== undefined
      ? [...hammered(lives, life), ...forgotten(lives, life)]
      : []
  )
