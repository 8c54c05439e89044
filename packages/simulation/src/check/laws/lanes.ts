import { isWork, type Law, of, violation } from "../internal/law.ts"
import type { CopyLife, DeliveryLife, Lives } from "../internal/Lives.ts"

/** The copy that a send or a redrive has stored, of which others are retries. */
const sentAs = (copy: CopyLife): CopyLife => (copy.parent === undefined ? copy : sentAs(copy.parent.copy))

/** The copies with a key that are in its lane at a moment, without this one. */
export const othersIn = ({ copies, scenario }: Lives, copy: CopyLife, index: number): ReadonlyArray<CopyLife> => {
  const { message, stored } = copy
  const key = message.plan?.group
  if (scenario.kind !== "sqlite" || key === undefined) return []
  return [...copies.values()].filter(
    (each) =>
      each !== copy &&
      each.message.plan?.group === key &&
      each.stored !== undefined &&
      each.stored.entry.queue === stored?.entry.queue &&
      each.stored.index < index &&
      (each.gone?.index ?? Infinity) > index &&
      // After a power cut, a copy may be there again.
      !each.backs.some(({ entry }) => entry.why === "restart")
  )
}

/** Whether a message was in another queue before: a redriven one may come before those that were sent before its redrive, or after. */
const isRedriven = ({ message, stored }: CopyLife): boolean =>
  message.copies.some(
    (each) =>
      each.stored !== undefined &&
      each.stored.index < (stored?.index ?? 0) &&
      each.stored.entry.queue !== stored?.entry.queue
  )

const isEarlier = (one: CopyLife, other: CopyLife): boolean =>
  !isRedriven(one) && !isRedriven(other) && (sentAs(one).stored?.index ?? 0) < (sentAs(other).stored?.index ?? 0)

/** Whether a consumer has a copy at a moment. */
const isOut = ({ deliveries }: CopyLife, index: number): boolean =>
  deliveries.some(({ back, handedOut }) => (handedOut?.index ?? Infinity) < index && (back?.index ?? Infinity) > index)

const brokenBy = (lives: Lives, { copy, handedOut }: DeliveryLife): CopyLife | undefined =>
  handedOut &&
  othersIn(lives, copy, handedOut.index).find((each) => isOut(each, handedOut.index) || isEarlier(each, copy))

/** Messages with the same key are delivered one at a time, in the order of their sends. */
export const lanes: Law = (lives) =>
  [...lives.deliveries.values()].flatMap((life) => {
    const other = isWork(lives, life) ? brokenBy(lives, life) : undefined
    if (other === undefined) return []
    const { entry, index } = life.handedOut!
    const what = `The file delivered a message while #${other.message.key} of its key was there; expected it to wait.`
    return [violation("lanes", entry.at, of(life), what, [other.stored?.index, life.copy.stored?.index, index])]
  })
