import { describe } from "../internal/Allowed.ts"
import { hasName, isWork, type Law, of, violation } from "../internal/law.ts"
import type { DeliveryLife, Lives, Run } from "../internal/Lives.ts"

/**
 * Index since which a process knows that a delivery is lost; -1 if it does not. After an ack in a transaction, only the answer to a
 * settlement shows that.
 */
const lostSince = ({ disconnected, enlisted, settlings }: DeliveryLife): number => {
  if (disconnected >= 0 && enlisted < 0) return disconnected
  return settlings.find(({ fate }) => fate === "lost")?.answer ?? -1
}

/**
 * Whether the request had waited for the extension that reports the loss: it is sent once that is answered, whatever the answer.
 */
const hasWaited = ({ history }: Lives, since: number, at: number): boolean =>
  history[since]?._tag === "Lapsed" && history[since].at === at

/** Whether another delivery of the copy has replaced it by then. */
const isReplaced = (lives: Lives, life: DeliveryLife, since: number, until: number): boolean =>
  hasName(lives, life.copy) &&
  life.process.deliveries.some(
    ({ arrived, copy }) => copy === life.copy && arrived !== undefined && arrived.index > since && arrived.index < until
  )

/**
 * Whether a handler runs again at once for it because an earlier message of its group does, which is not lost: until that has
 * left the queue, the broker delivers no later one.
 */
const isRerunWithGroup = (lives: Lives, life: DeliveryLife, run: Run): boolean => {
  const { given } = run.began.entry
  const before = given.slice(
    0,
    given.findIndex(({ delivery }) => delivery === life.delivery)
  )
  const isHeld = (each: DeliveryLife): boolean => {
    const since = lostSince(each)
    return since < 0 || since > run.began.index || isReplaced(lives, each, since, run.began.index)
  }
  return (
    lives.scenario.fifo !== undefined &&
    life.runs.indexOf(run) > 0 &&
    before
      .flatMap(({ delivery }) => lives.deliveries.get(delivery) ?? [])
      .some((each) => each.copy.message.plan?.group === life.copy.message.plan?.group && isHeld(each))
  )
}

/** A lost delivery starts nothing new: no handler runs for it, and a settlement that had failed is not requested again. */
export const lost: Law = (lives) =>
  [...lives.deliveries.values()].flatMap((life) => {
    const since = lostSince(life)
    if (since < 0 || !isWork(lives, life)) return []
    const { name } = life.process
    const runs = life.runs
      .filter(({ began }) => began.index > since && !isReplaced(lives, life, since, began.index))
      .filter((run) => !isRerunWithGroup(lives, life, run))
      .map(({ began }) => {
        const what = `${name} began a handler for a delivery that it knew to be lost; expected it to wait for the next one.`
        return violation("lost", began.entry.at, of(life), what, [since, began.index])
      })
    const hasFailed = life.settlings.some(({ answer }) => answer >= 0 && answer < since)
    const later = life.settlings.filter(({ index }) => index > since)
    // A request in flight is repeated until it is answered.
    const isUnderWay = later.some(({ at }) => hasWaited(lives, since, at))
    const asked = (hasFailed && !isUnderWay ? later : []).map(({ asked, at, index }) => {
      const what = `${name} asked for ${describe(asked)} of a delivery that it knew to be lost; expected nothing more.`
      return violation("lost", at, of(life), what, [since, index])
    })
    return [...runs, ...asked]
  })
