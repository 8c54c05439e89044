import type { History } from "../../History.ts"
import { familyOf, type Operation } from "../../Scenario.ts"
import { hasName, type Law, operator as name, violation } from "../internal/law.ts"
import type { CopyLife, DeliveryLife, EntryOf, Lives, ProcessLife } from "../internal/Lives.ts"

/** A redrive, or a purge of some letters: operations that go through a queue letter by letter. */
interface Job {
  readonly what: Extract<Operation["what"], { readonly _tag: "Redrive" | "Purge" }>
  readonly from: number
  readonly until: number
  readonly ended: EntryOf<"Operated">
  /** Whether another one runs at the same time. */
  readonly isShared: boolean
  /** Whether another operation runs at an entry: what the broker delivers then may be for that one. */
  readonly isAmbiguous: (index: number) => boolean
}

/** The operations of a queue, from their begin until their end. */
const spansOf = ({ history, scenario }: Lives) =>
  history.flatMap((entry, from) => {
    const what = entry._tag === "Operates" ? scenario.operations[entry.operation]?.what : undefined
    if (entry._tag !== "Operates" || what === undefined || !("queue" in what)) return []
    const until = history.findIndex((each) => each._tag === "Operated" && each.operation === entry.operation)
    return [{ what, from, until: until < 0 ? history.length : until }]
  })

const jobsOf = (lives: Lives): ReadonlyArray<Job> => {
  const spans = spansOf(lives)
  const jobs = spans.flatMap(({ from, until, what }) => {
    const ended = lives.history[until]
    const isJob = what._tag === "Redrive" || (what._tag === "Purge" && what.odd)
    return ended?._tag === "Operated" && isJob ? [{ what, from, until, ended }] : []
  })
  return jobs.map((job) => {
    const others = spans.filter(({ from, what }) => from !== job.from && what.queue === job.what.queue)
    return {
      ...job,
      isShared: jobs.some((each) => each !== job && each.from < job.until && each.until > job.from),
      isAmbiguous: (index) => others.some(({ from, until }) => from < index && index < until)
    }
  })
}

/** Whether the broker or the connection to it was in trouble, beyond what a job recovers from. */
const isTroubled = ({ history, scenario }: Lives, { from, until }: Job, of: (site: string) => boolean): boolean =>
  scenario.operations.some(({ what }) => what._tag === "Restart" || what._tag === "Throttle") ||
  isFaulty(history.slice(0, until + 1), from, of)

const isFaulty = (history: History, from: number, of: (site: string) => boolean): boolean =>
  history.some((each, index) => each._tag === "Fault" && each.site.includes(name) && of(each.site) && index > from)

/** Maximum milliseconds until a lost connection is noticed and restored. */
const unnoticed = 11_000

/** Maximum milliseconds of a stall of a connection to RabbitMQ, in which a request of an earlier job may end it. */
const stalled = 15_000

/**
 * Whether a connection that a job begins with may have been lost before, and the job only notices it. The adapter for RabbitMQ
 * browses on the connection of its consumers, which lasts as long as the broker.
 */
const isCutBefore = ({ history, scenario }: Lives, { from }: Job): boolean => {
  const isRabbitMq = scenario.kind === "rabbitmq"
  const lasting = (kind: string): number => (isRabbitMq && kind === "late" ? stalled : unnoticed)
  const places = isRabbitMq ? [`${name} publish`, `${name} consume`] : [`${name} publish`]
  return history
    .slice(0, from)
    .some(
      (each) =>
        each._tag === "Fault" &&
        each.at >= history[from]!.at - lasting(each.kind) &&
        places.some((place) => each.site.includes(place))
    )
}

/** Whether no letter was ever in the queue of a job. Then no consumer may have made it, and a broker may refuse to browse it. */
const isMissing = ({ copies }: Lives, { ended, until, what }: Job): boolean =>
  ended.reason === "QueueMissing" &&
  ![...copies.values()].some(({ stored }) => stored?.entry.queue === what.queue && stored.index < until)

/** Milliseconds by which the counts of SQS may be late. */
const oldest = 60_000

/** Whether a purge of a FIFO queue may count letters as not browsed that had left the queue before it began. */
const countsGone = ({ copies, history, scenario }: Lives, { ended, from, what }: Job): boolean =>
  scenario.fifo !== undefined &&
  what._tag === "Purge" &&
  ended.failed === "DeadLettersStopped" &&
  [...copies.values()].some(
    ({ gone }) =>
      gone !== undefined &&
      gone.entry.queue === what.queue &&
      gone.index < from &&
      gone.entry.at >= history[from]!.at - oldest
  )

const isDelivering = (site: string): boolean => site.includes("consume") || site.includes("receive")

/** Letters that the broker has removed for a job. */
const removedBy = (people: ProcessLife | undefined, { from, until, what }: Job): number =>
  (people?.settlings ?? []).filter(
    ({ answer, asked, fate, of: { copy } }) =>
      asked.tag === "Ack" &&
      fate === "taken" &&
      answer > from &&
      answer < until &&
      copy.stored?.entry.queue === what.queue
  ).length

/** Letters that existed when a job began to take some, at the latest. */
const presentAt = ({ copies, history }: Lives, { from, isAmbiguous, until, what: { queue } }: Job): number => {
  const first = history.findIndex(
    (each, index) =>
      index === until ||
      (index > from &&
        each._tag === "HandedOut" &&
        each.process === name &&
        each.queue === queue &&
        !isAmbiguous(index))
  )
  const isThere = ({ gone, stored }: CopyLife): boolean =>
    stored?.entry.queue === queue && stored.index < first && (gone === undefined || gone.index > from)
  return [...copies.values()].filter(isThere).length
}

const faultOf = (lives: Lives, people: ProcessLife | undefined, job: Job): string | undefined => {
  const { ended, what } = job
  const { count = 0, failed } = ended
  if (failed !== undefined) {
    // A job that could not begin has done nothing, and reports that.
    const isExcused =
      isTroubled(lives, job, () => true) ||
      (failed === "BrokerError" && isCutBefore(lives, job)) ||
      isMissing(lives, job) ||
      countsGone(lives, job)
    return failed === "died" || !isExcused
      ? `failed with ${failed}; expected it to continue with the other letters`
      : undefined
  }
  const removed = removedBy(people, job)
  if (count > removed) return `reported ${count} letters; expected at most ${removed}, which the broker had removed`
  if (what._tag === "Redrive" && count > (what.limit ?? Infinity)) {
    return `moved ${count} letters; expected ${what.limit} at most`
  }
  const present = ["push", "store"].includes(familyOf(lives.scenario)) ? presentAt(lives, job) : Infinity
  return count > present ? `took ${count} letters; expected the ${present} that were there when it began` : undefined
}

/**
 * Deliveries of a letter that were removed by an ack which the broker never received: without identity, it looks like another
 * letter.
 */
const lostAcks = ({ deliveries }: CopyLife): ReadonlyArray<DeliveryLife> =>
  deliveries.filter(
    ({ back, settlings }) =>
      back !== undefined && settlings.some(({ asked, fate }) => asked.tag === "Ack" && fate === "taken")
  )

/** Letters of which a redrive has published more copies than there were letters. */
const doubled = (lives: Lives, job: Job): ReadonlyArray<CopyLife> => {
  const { from, until, what } = job
  const isExcused = job.isShared || isTroubled(lives, job, (site) => !isDelivering(site))
  if (what._tag !== "Redrive" || isExcused) return []
  return [...lives.keys.values()].flatMap(({ copies }) => {
    const published = copies.filter(
      ({ stored }) =>
        stored?.entry.process === name &&
        stored.entry.queue !== what.queue &&
        stored.index > from &&
        stored.index < until
    )
    const letters = copies.filter(
      ({ gone, stored }) =>
        stored?.entry.queue === what.queue && stored.index < until && (gone === undefined || gone.index > from)
    )
    const isDuring = ({ handedOut }: DeliveryLife): boolean =>
      handedOut !== undefined && handedOut.index > from && handedOut.index < until
    // A copy of an earlier redrive may be stored late.
    const isTaken = copies.some(({ deliveries }) =>
      deliveries.some((life) => life.process.name === name && isDuring(life))
    )
    if (!isTaken) return []
    const again = letters
      .filter((letter) => !hasName(lives, letter))
      .flatMap(lostAcks)
      .filter(isDuring)
    // A letter without identity is recognised by its metadata.
    const isKnown = letters.every((letter) => hasName(lives, letter) || letter.stored?.entry.process !== undefined)
    return isKnown ? published.slice(letters.length + again.length) : []
  })
}

/** A redrive or a purge goes once through the existing letters, reports what it did, and fails only on trouble. */
export const operators: Law = (lives) => {
  const operator = lives.processes.get(name)
  return jobsOf(lives).flatMap((job) => {
    const { ended, from, until, what } = job
    const fault = faultOf(lives, operator, job)
    return [
      ...(fault === undefined
        ? []
        : [violation("operators", ended.at, { process: name }, `A ${what._tag} ${fault}.`, [from, until])]),
      ...doubled(lives, job).map(({ message: { key }, stored }) =>
        violation(
          "operators",
          stored?.entry.at ?? ended.at,
          { key },
          "A redrive published a letter twice; expected one copy.",
          [from, stored?.index]
        )
      )
    ]
  })
}
