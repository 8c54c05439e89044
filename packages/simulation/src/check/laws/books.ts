import { familyOf } from "../../Scenario.ts"
import { describe } from "../internal/Allowed.ts"
import { namesakesOf } from "../internal/doubled.ts"
import { type Law, violation } from "../internal/law.ts"
import type { CopyLife, Lives, ProcessLife, Seen } from "../internal/Lives.ts"

/** Milliseconds in which a process that runs declares what was deleted, even if it stands still or its connection is cut. */
const redeclaring = 120_000

/** Whether no process has had the time to bind its queue again to an exchange that was deleted. */
const isUnbound = ({ processes, scenario: { rabbitmq } }: Lives, at: number): boolean => {
  const { deletedAt = Infinity } = rabbitmq ?? {}
  const hadTime = ({ draining, killed, started, version }: ProcessLife): boolean => {
    const from = Math.max(deletedAt, started?.entry.at ?? Infinity)
    const until = Math.min(at, draining?.entry.at ?? at, killed?.entry.at ?? at)
    return version !== undefined && until - from > redeclaring
  }
  return at >= deletedAt && ![...processes.values()].some(hadTime)
}

/** Whether a policy of the server's operators has ended what the server itself had dead-lettered to a queue of the adapter. */
const isExpired = ({ scenario, work }: Lives, { stored }: CopyLife, at: number): boolean => {
  const { policyTtl = Infinity } = scenario.rabbitmq ?? {}
  return stored?.entry.native === true && !work.has(stored.entry.queue) && at >= stored.entry.at + policyTtl
}

/** The error in the end of a copy. */
const faultOf = (lives: Lives, copy: CopyLife, { entry, index }: Seen<"Gone">): string | undefined => {
  const { history, scenario } = lives
  const { message, stored } = copy
  switch (entry.why) {
    case "settled":
      return settledFault(lives, copy, index)
    // The law of transactions.
    case "transaction":
      return undefined
    case "forgotten":
      // The law of durability.
      if (familyOf(scenario) === "store" || isExpired(lives, copy, entry.at)) return undefined
      return familyOf(scenario) === "lossy" ? undefined : `was forgotten; expected a ${scenario.kind} broker to keep it`
    case "undelivered":
      return isUnbound(lives, entry.at) ? undefined : "was left undelivered; expected its queue to be bound"
    case "backstop": {
      // The broker moves it in one step; the order of the two facts does not matter.
      const isMoved = message.copies.some((each) => each.stored?.entry.native === true && each !== copy)
      return isMoved ? undefined : "was taken by the broker's backstop; expected it among the dead letters"
    }
    case "purged":
    case "deleted": {
      const isWanted = history.slice(0, index).some(({ _tag }) => _tag === "Operates")
      return isWanted
        ? undefined
        : `was ${entry.why} from ${stored?.entry.queue ?? "a queue"}; expected an operator who did that`
    }
  }
}

/**
 * Whether as many replacements are stored as a process has removed copies of one message. If a send was repeated on another nsqd, a
 * process may have the message twice: its two dead letters are equal, so no server shows which copy each of them replaces.
 */
const areReplaced = (lives: Lives, { message, parent }: CopyLife, process: ProcessLife | undefined, index: number) => {
  if (familyOf(lives.scenario) !== "lossy") return false
  const twins = message.copies.filter((each) => each.parent === parent)
  const removed = twins.filter(({ deliveries, gone }) =>
    deliveries.some(({ delivery, process: by }) => by === process && delivery === gone?.entry.delivery)
  )
  const made = twins.flatMap(({ children }) => children.filter(({ parent }) => parent?.process === process))
  const until = (each: { readonly index: number } | undefined): boolean => each !== undefined && each.index <= index
  return made.filter((each) => until(each.stored)).length >= removed.filter(({ gone }) => until(gone)).length
}

const settledFault = (lives: Lives, copy: CopyLife, index: number): string | undefined => {
  const { scenario, work } = lives
  const { children, deliveries, gone, message, stored } = copy
  const namesakes = [...namesakesOf(copy)]
  const isReplaced = namesakes.some((one) =>
    one.children.some((each) => each.stored !== undefined && each.stored.index < index)
  )
  if (stored !== undefined && !work.has(stored.entry.queue)) {
    // A dead letter leaves by a redrive, which stores another copy first, or by a purge of some.
    const isRedriven = message.copies.some(
      (each) => each.stored !== undefined && each.stored.index > stored.index && each.stored.index < index
    )
    const isPurged = scenario.operations.some(
      ({ what }) => what._tag === "Purge" && what.queue === stored.entry.queue && (!what.odd || message.key % 2 === 1)
    )
    return isReplaced || isRedriven || isPurged ? undefined : "a dead letter, was removed; expected a copy of it before"
  }
  const last = deliveries.find(({ delivery }) => delivery === gone?.entry.delivery)
  // A settled message that is redelivered because its removal was lost, or not yet answered, is removed by the client itself, and
  // so is its namesake.
  const asked = namesakes
    .flatMap((one) => one.deliveries)
    .flatMap((each) =>
      each.process === last?.process
        ? each.settlings.filter(
            (every) => every.index < index && (each === last || every.fate === "taken" || every.fate === undefined)
          )
        : []
    )
  // A client that has stored a copy removes the original when it is redelivered, and returns messages as copies when it ends.
  const isOwn = children.some(
    ({ parent, stored: made }) => parent?.process === last?.process && made !== undefined && made.index < index
  )
  if (asked.length === 0) return isOwn ? undefined : "was removed; expected a process that asked for it"
  const ends = asked.some((each) => each.asked.tag === "Ack" || each.asked.tag === "Drop")
  return ends || isReplaced || areReplaced(lives, copy, last?.process, index)
    ? undefined
    : `was removed for ${asked.map((each) => describe(each.asked)).join(", ")}; expected its copy to be stored before`
}

/** Each message that was sent is somewhere, or its end has a reason; and no copy leaves before its replacement is stored. */
export const books: Law = (lives) =>
  [...lives.keys.values()].flatMap((message) => {
    const { copies, key, sending, sent } = message
    const isStored =
      sent === undefined || copies.some(({ stored }) => stored !== undefined && stored.index < sent.index)
    const lost =
      sent === undefined || isStored
        ? []
        : [
            violation("books", sent.entry.at, { key }, "Its send was confirmed; expected a copy stored before.", [
              sending?.index,
              sent.index
            ])
          ]
    const ends = copies.flatMap((copy) => {
      const { gone, stored } = copy
      if (gone === undefined) return []
      const fault = faultOf(lives, copy, gone)
      if (fault === undefined) return []
      const { at, delivery } = gone.entry
      const settlings = copy.deliveries.find((each) => each.delivery === delivery)?.settlings ?? []
      const about = delivery === undefined ? { key } : { key, delivery }
      const shown = [stored?.index, ...settlings.map(({ index }) => index), gone.index]
      return [violation("books", at, about, `Copy ${copy.copy} ${fault}.`, shown)]
    })
    return [...lost, ...ends]
  })
