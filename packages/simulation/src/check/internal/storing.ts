/** Reads what brokers do with copies, and before which time no handler may begin them. */
import { familyOf } from "../../Scenario.ts"
import { operator } from "./law.ts"
import type { Bound, CopyLife, DeliveryLife, ProcessLife, Seen, Settling } from "./Lives.ts"
import type { Registry } from "./registry.ts"

const dueOf = ({ asked, at }: Settling): number => at + asked.delay

/** The retry that a copy was made for: the first due of those whose request may have arrived, however late. */
const askedFor = ({ settlings }: DeliveryLife): Settling | undefined => {
  if (settlings.at(-1)?.asked.tag !== "Retry") return undefined
  const may = settlings.filter(
    ({ asked, fate }) => asked.tag === "Retry" && fate !== "transient" && fate !== "rejected"
  )
  return may.toSorted((a, b) => dueOf(a) - dueOf(b))[0]
}

/** Milliseconds of a retry's delay that the clock of its process has counted too much before the copy was stored: RabbitMQ keeps the rest. */
const overcounted = ({ at, of: { process } }: Settling, stored: number): number =>
  Math.max(0, process.clock.least(at, stored) - (stored - at))

/**
 * Whether its process could not know that a retry had hidden it, and so renewed its lease, which hides it for less. The broker
 * reports the end of the lease only if that was the last request.
 */
const isOpen = (life: DeliveryLife | undefined): boolean =>
  life?.settlings.some(({ asked, fate }) => asked.tag === "Retry" && fate === "unknown") === true

/** Whether a broker has delivered a copy during its delay. The lease of that delivery then replaces the delay. */
const isDuring = (life: DeliveryLife | undefined, { at, since }: Bound): boolean => {
  const handedOut = life?.handedOut?.entry.at
  return handedOut !== undefined && handedOut > since && handedOut < at
}

/** Readers of what a broker stores and takes back. `work` has the queues that programs send to. */
export const storing = ({ copyOf, deliveries, processOf, scenario }: Registry, work: ReadonlySet<string>) => {
  /** The time in a copy's metadata before which no handler may begin it. */
  const writtenOf = (index: number, copy: CopyLife, process: ProcessLife | undefined): Bound | undefined => {
    const { message, parent, stored } = copy
    // A dead letter is due whenever an operator decides.
    if (process?.name === operator) return undefined
    const settling = parent === undefined || stored?.entry.replaces === true ? undefined : askedFor(parent)
    if (settling !== undefined) {
      const isKept = familyOf(scenario) === "push" && scenario.rabbitmq?.topology !== "waitLoop"
      const early = isKept && stored !== undefined ? overcounted(settling, stored.entry.at) : 0
      return { at: dueOf(settling) - early, since: settling.at, process, index }
    }
    if (parent?.copy.stored !== undefined && work.has(parent.copy.stored.entry.queue)) {
      // As it was delivered: the copy may be stored late, when a later delivery of the message has been settled.
      const { bound } = parent
      // SQS keeps up to 15 minutes by its own clock, and the copy has no time then: `isCovered` of the adapter's `toPublication`. On
      // NSQ, a process that returns what arrives before its time writes that by its own clock: `dueOf` of the adapter's `toDelivery`.
      const isKept = bound !== undefined && process !== undefined && ["lease", "lossy"].includes(familyOf(scenario))
      return isKept ? { ...bound, measured: [...(bound.measured ?? []), process] } : bound
    }
    const { sending } = message
    if (sending === undefined) return undefined
    return { at: sending.entry.earliest, since: sending.entry.at, process: undefined, index: sending.index }
  }

  const store = (seen: Seen<"Stored">): void => {
    const { entry, index } = seen
    const copy = copyOf(entry.copy, entry.key)
    copy.stored = seen
    copy.parent = entry.of === undefined ? undefined : deliveries.get(entry.of)
    copy.parent?.copy.children.push(copy)
    if (!work.has(entry.queue)) return
    copy.written = writtenOf(index, copy, entry.process === undefined ? undefined : processOf(entry.process))
    copy.bound = copy.written
  }

  const back = (seen: Seen<"Back">): void => {
    const { at, delivery, due, key, replaced, why } = seen.entry
    const copy = copyOf(seen.entry.copy, key)
    copy.backs.push(seen)
    if (why === "restart") {
      // A power cut may undo the end of a copy, and ends all deliveries.
      copy.gone = undefined
      for (const each of copy.deliveries) each.back ??= seen
    }
    const life = delivery === undefined ? undefined : deliveries.get(delivery)
    if (life !== undefined) life.back = seen
    // A replacement has the time of the message, though it may be stored after a retry was decided.
    if (replaced === true) return
    const settling = life?.settlings.at(-1)
    // A client that ends returns unchanged, at once, what it could not settle: what was refused, what has no answer yet, and what it
    // has given up in the middle of a copy, which it reports as lost.
    const isHeld = settling?.fate !== "lost" || (life?.disconnected ?? -1) < 0
    const isUnsettled = settling !== undefined && settling.fate !== "taken" && isHeld
    const isAtOnce = why === "asked" && due <= at
    if (isAtOnce && isUnsettled && life?.process.draining !== undefined) copy.bound = undefined
    else if (why === "asked" && settling?.asked.tag === "Retry") {
      const { asked, at: since, index } = settling
      copy.bound = { at: since + asked.delay, since, process: life?.process, index }
    } else if ((why === "restart" && familyOf(scenario) === "lossy") || (why === "lease" && isOpen(life))) {
      copy.bound = copy.written
    } else if ((why === "lease" || why === "asked") && familyOf(scenario) === "lease") {
      // SQS accepts a late extension until it delivers the message again, even after a retry.
      const isLate = why === "lease" && life?.process.extendsLate === true
      const isReplaced = copy.bound !== undefined && (isLate || isDuring(life, copy.bound))
      if (isReplaced) copy.bound = copy.written
    }
  }

  return { store, back }
}
