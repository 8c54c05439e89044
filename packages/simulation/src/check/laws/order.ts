import { describe } from "../internal/Allowed.ts"
import { earlierIn, isEnded } from "../internal/grouping.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { CopyLife, DeliveryLife, Lives } from "../internal/Lives.ts"
import type { Violation } from "../Violation.ts"

/** Whether a delivery has not ended by then, as far as its broker knows. */
const isCurrent = ({ back, copy, disconnected, handedOut }: DeliveryLife, index: number): boolean =>
  (back === undefined || back.index > index) &&
  (disconnected < 0 || disconnected > index) &&
  !copy.deliveries.some((each) => {
    const later = each.handedOut?.index ?? -1
    return later > (handedOut?.index ?? Infinity) && later < index
  })

/** Whether a message need not end before later ones begin: no handler can have it, or its dead letter is stored. */
const isDone = ({ children, message: { plan } }: CopyLife, index: number): boolean =>
  plan?.body === "undecodable" || children.some(({ stored }) => stored !== undefined && stored.index < index)

/** Runs that begin before the end of an earlier message of their group. */
const begunEarly = (lives: Lives, life: DeliveryLife): ReadonlyArray<Violation> =>
  life.runs.flatMap(({ began: { entry, index } }, nth) => {
    // Of its batch, those that precede it; some may not run again with it.
    const at = entry.given.findIndex(({ delivery }) => delivery === life.delivery)
    const rerun = life.runs.slice(0, nth).flatMap(({ began }) => began.entry.given.map(({ key }) => key))
    const before = new Set([...entry.given.slice(0, at).map(({ key }) => key), ...rerun])
    const earlier = earlierIn(lives, life.copy, index, life.process).find(
      (each) => !isDone(each, index) && !before.has(each.message.key)
    )
    if (earlier === undefined || !isCurrent(life, index)) return []
    const what = `${life.process.name} began a handler before the end of #${earlier.message.key}, which is earlier in its group; expected it to wait.`
    const shown = earlier.deliveries.map(({ handedOut }) => handedOut?.index)
    return [violation("order", entry.at, of(life), what, [earlier.stored?.index, ...shown, index])]
  })

/** Messages that end before an earlier one of their group, which their process has returned. */
const endedEarly = (lives: Lives, life: DeliveryLife): ReadonlyArray<Violation> =>
  life.settlings.flatMap((settling) => {
    const { asked, at, attempt, index } = settling
    const isEnd = asked.tag !== "Retry" && asked.tag !== "Release"
    // One that no handler can have, such as an undecodable message, is dead-lettered before the others.
    if (!isEnd || attempt.turns.length === 0 || !isCurrent(life, index)) return []
    const earlier = earlierIn(lives, life.copy, index, life.process).find((each) => !isEnded(lives, each, settling))
    if (earlier === undefined) return []
    const what = `${life.process.name} asked for ${describe(asked)} before the end of #${earlier.message.key}, which is earlier in its group; expected it after that.`
    const shown = earlier.deliveries.flatMap(({ settlings }) => settlings.map((each) => each.index))
    return [violation("order", at, of(life), what, [...shown, index])]
  })

/** Messages of a group are handled, and end, in the order of their queue. */
export const order: Law = (lives) =>
  lives.scenario.fifo === undefined
    ? []
    : [...lives.deliveries.values()].flatMap((life) =>
        isWork(lives, life) && life.process.version !== undefined
          ? [...begunEarly(lives, life), ...endedEarly(lives, life)]
          : []
      )
