/** How many attempts a copy can account for, by what the broker delivered and what handlers began. */
import { namesakesOf } from "./doubled.ts"
import type { Attempt, CopyLife, DeliveryLife, Lives } from "./Lives.ts"
import { hasName } from "./law.ts"
import { mustBeTimedOut } from "./timing.ts"

const handedOutBefore = (copy: CopyLife, until: DeliveryLife): ReadonlyArray<DeliveryLife> =>
  copy.deliveries.slice(0, copy.deliveries.indexOf(until))

/** Later deliveries of the copy that arrived at its process before it: each counts all deliveries so far. */
const overtaking = (delivery: DeliveryLife): ReadonlyArray<DeliveryLife> =>
  delivery.copy.deliveries
    .slice(delivery.copy.deliveries.indexOf(delivery) + 1)
    .filter((each) => each.process === delivery.process && hasCome(each, delivery))

/** Whether a delivery had arrived when another one arrived. */
const hasCome = ({ arrived }: DeliveryLife, other: DeliveryLife): boolean =>
  (arrived?.index ?? Infinity) < (other.arrived?.index ?? -1)

/** Whether a handler began it, and it was not returned untouched. */
const isUsed = ({ attempt, delivery, copy, runs, settlings }: DeliveryLife): boolean => {
  // A client that ends returns what it holds, perhaps as a copy.
  const isReturned = settlings.length === 0 && copy.children.some(({ parent }) => parent?.delivery === delivery)
  // One that was replaced while its handler ran is settled by the other.
  const last = settlings.at(-1) ?? attempt?.settlings.at(-1)
  return runs.length > 0 && !isReturned && last?.asked.tag !== "Release"
}

/** Whether its client has replaced it: the replacement has the count from before this delivery, whose handler may begin later. */
const isReplaced = ({ back }: DeliveryLife): boolean => back?.entry.replaced === true

/** The copy's parent within its life: a redriven dead letter begins anew. */
const parentOf = ({ work }: Lives, { parent }: CopyLife): DeliveryLife | undefined =>
  parent?.copy.stored !== undefined && work.has(parent.copy.stored.entry.queue) ? parent : undefined

/** The minimum number of attempts that were used up before a delivery. */
export const fewestBefore = (lives: Lives, { copy }: DeliveryLife, until: DeliveryLife): number => {
  const parent = parentOf(lives, copy)
  // A redelivery that replaces one whose handler ran is the same attempt.
  const attempt = attemptWith(until, until)
  const same = [...(attempt?.deliveries ?? []), ...perhapsReplaced(attempt?.prior, until)]
  const usedBefore = handedOutBefore(copy, until).filter(
    (each) => isUsed(each) && !isReplaced(each) && !same.includes(each)
  )
  const used = new Set(usedBefore.map((each) => attemptWith(each, each) ?? each)).size
  if (parent === undefined) return used
  // A replacement is made before the run of its original, which may remain if that is not known to be stored.
  const isBefore = copy.stored?.entry.replaces === true
  return used + fewestBefore(lives, parent, parent) + (isUsed(parent) && !isBefore ? 1 : 0)
}

/**
 * The deliveries of an attempt whose handler had not ended when another delivery arrived. If its process stood still, it is unknown
 * whether its time was over by then: if it was not, the other one has replaced them.
 */
const perhapsReplaced = (before: Attempt | undefined, { arrived }: DeliveryLife): ReadonlyArray<DeliveryLife> => {
  const last = before?.turns.at(-1)?.run
  if (before === undefined || last?.ended === undefined || arrived === undefined) return []
  const isRunning = last.ended.index > arrived.index && !mustBeTimedOut(last, arrived.entry.at)
  return isRunning ? before.deliveries : []
}

/** The attempt of a process that a delivery belongs to. */
const attemptWith = ({ process }: DeliveryLife, delivery: DeliveryLife): Attempt | undefined =>
  process.attempts.findLast(({ copy, deliveries }) => copy === delivery.copy && deliveries.includes(delivery))

/** Whether the process has settled the message for good, as the broker has answered, and so has forgotten it. */
const isForgotten = (attempt: Attempt | undefined, { arrived }: DeliveryLife): boolean =>
  attempt?.settlings.some(
    ({ answer, asked: { tag }, fate }) =>
      fate === "taken" && tag !== "Retry" && tag !== "Release" && answer < (arrived?.index ?? -1)
  ) === true

/** Deliveries of the copy that, as this process knows, reached no handler, because they were lost before. */
export const knownUnseen = (lives: Lives, until: DeliveryLife): number => {
  // A slow codec uses up attempts without a handler.
  const body = until.copy.message.plan?.body
  if (body === "neverDecoded" || body === "slowToDecode" || !hasName(lives, until.copy)) return 0
  return handedOutBefore(until.copy, until).filter(
    (each) =>
      each.process === until.process &&
      hasCome(each, until) &&
      overtaking(each).length === 0 &&
      each.back !== undefined &&
      each.back.entry.why !== "asked" &&
      each.settlings.length === 0 &&
      !isForgotten(attemptWith(each, each), until) &&
      attemptWith(each, each)?.turns.every(({ run }) => run.began.index > (until.arrived?.index ?? 0)) === true
  ).length
}

/** Whether its process knows that the broker has not accepted its return: its redelivery continues it. */
const isUnreturned = (attempt: Attempt | undefined): boolean =>
  attempt !== undefined &&
  attempt.settlings.length > 0 &&
  attempt.settlings.every(({ asked, fate }) => asked.tag === "Release" && fate !== undefined && fate !== "taken")

/**
 * Deliveries of the copy to this process that no handler began, or that the next one continues: lost, returned, or settled by an
 * earlier decision.
 */
export const passedBy = (until: DeliveryLife): number => {
  const before = handedOutBefore(until.copy, until).filter(
    ({ arrived, process }) => process === until.process && arrived !== undefined
  )
  // One that replaced another is the same attempt.
  const used = before.filter((each) => each.runs.length > 0 && !isUnreturned(attemptWith(each, each)))
  const begun = new Set(used.map((each) => attemptWith(each, each) ?? each))
  return before.length - begun.size
}

/** Deliveries to its process of copies with its name: what is remembered of one counts for the other. */
const alike = ({ copy, process }: DeliveryLife): ReadonlyArray<DeliveryLife> =>
  [...namesakesOf(copy)].flatMap((each) =>
    each === copy ? [] : each.deliveries.filter((delivery) => delivery.process === process)
  )

/** The maximum number of attempts that were used up before a copy was stored. */
const mostBefore = (lives: Lives, copy: CopyLife): number => {
  const parent = parentOf(lives, copy)
  if (parent === undefined) return 0
  const attempt = attemptWith(parent, parent)
  const arrived = [...(attempt?.deliveries ?? []), ...alike(parent)].map((each) => each.arrived?.entry.attempts ?? 0)
  const given = attempt?.turns.map((turn) => turn.given.attempts) ?? []
  // A hop carries the count from before this delivery.
  const isHop = given.length === 0 && attempt?.decided === undefined
  // A client that ends may copy what it never received.
  const handedOut = attempt === undefined ? [mostAt(lives, parent)] : []
  return Math.max(1, ...given, ...arrived, ...handedOut) - (isHop ? 1 : 0)
}

/**
 * The maximum number of attempts in a delivery, this one included: all deliveries before it, or before one that had overtaken it
 * and was settled.
 */
export const mostAt = (lives: Lives, delivery: DeliveryLife): number => {
  const last = overtaking(delivery).findLast(({ settlings }) => settlings.length > 0) ?? delivery
  return mostBefore(lives, delivery.copy) + delivery.copy.deliveries.indexOf(last) + 1
}

/** All deliveries of a message's life up to this one, itself included. */
export const lifeOf = (lives: Lives, delivery: DeliveryLife): ReadonlyArray<DeliveryLife> => {
  const parent = parentOf(lives, delivery.copy)
  const before = handedOutBefore(delivery.copy, delivery)
  return parent === undefined ? [...before, delivery] : [...lifeOf(lives, parent), ...before, delivery]
}

/** Retries that the broker accepted, in this life of the message. */
export const retriesOf = (lives: Lives, delivery: DeliveryLife): number => {
  const retried = lifeOf(lives, delivery).filter(
    (each) =>
      each !== delivery &&
      each.settlings.some(({ asked, fate }) => asked.tag === "Retry" && fate === "taken") &&
      attemptWith(each, each)?.turns.length !== 0
  )
  // A retry that is repeated on a redelivery counts once.
  return new Set(retried.map((each) => attemptWith(each, each))).size
}

/** Whether a foreign producer wrote metadata, with any number of attempts. */
export const isForged = ({ copy }: DeliveryLife): boolean => copy.message.plan?.metadata !== undefined
