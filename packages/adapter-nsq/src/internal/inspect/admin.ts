/** Counts, browses and removes the messages of a queue, over all nsqd and both of its topics. */
import { type Backlog, type Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Names from "../names.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import * as NsqdQuestions from "../nsqdQuestions.ts"
import * as NsqdStats from "../nsqdStats.ts"
import * as Browse from "./browse.ts"
import type { HolderDependencies } from "./holder.ts"
import * as Places from "./places.ts"

/** Messages per page. */
const pageSize = 256

const unsupported = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "browse",
    queue,
    reason: "Unsupported",
    detail: "nsqd shows a deferred message only when it is due"
  })

/** Removes up to `most` messages and returns their number. Fails if the outcome of a removal is unknown. */
const removing =
  (most: number) =>
  ({ next, remove }: Broker.Browser): Effect.Effect<number, BrokerError.BrokerError> =>
    Effect.gen(function* () {
      let removed = 0
      while (removed < most) {
        const page = yield* next(Math.min(pageSize, most - removed))
        if (page.length === 0) break
        const failures = yield* remove(page.map(({ delivery }) => delivery))
        const unknown = failures.find(({ fate }) => fate !== "lost")
        if (unknown !== undefined) return yield* unknown.error
        removed += page.length - failures.length
      }
      return removed
    })

/**
 * Returns the numbers that nsqd reports for a queue, and why others are missing.
 * https://nsq.io/components/nsqd.html#get-stats
 */
const told = ({ clients, delayed, inFlight, ready }: NsqdStats.Depths): Backlog.Backlog => ({
  ready,
  inFlight,
  delayed,
  backoff: delayed === 0 ? [] : undefined,
  undelivered: 0,
  oldest: ready === 0 ? 0 : undefined,
  consumers: clients,
  remarks: {
    ...(delayed === 0 ? {} : { backoff: "nsqd reports how many messages are deferred, but not when they are due" }),
    ...(ready === 0 ? {} : { oldest: "nsqd does not report the age of messages" })
  }
})

const withoutHttp = "nsqd reports counts over HTTP, which http: false disables"

/** The numbers that come over HTTP. */
const byHttp: ReadonlyArray<Backlog.Field> = ["ready", "inFlight", "delayed", "backoff", "oldest", "consumers"]

const silent: Backlog.Backlog = {
  ready: undefined,
  inFlight: undefined,
  delayed: undefined,
  backoff: undefined,
  undelivered: 0,
  oldest: undefined,
  consumers: undefined,
  remarks: Object.fromEntries(byHttp.map((field) => [field, withoutHttp]))
}

const numbersOf = ({ delayed, inFlight, ready }: NsqdStats.Depths) => ({ ready, inFlight, delayed })

const stateOf = ({ isMissing, isPaused }: NsqdStats.Depths, missing: ReadonlyArray<BrokerError.BrokerError>) => ({
  ...(isPaused ? { isPaused } : {}),
  // An nsqd that does not answer may have the queue.
  ...(isMissing && missing.length === 0 ? { isMissing } : {}),
  ...(missing.length === 0 ? {} : { missing })
})

export const make = (dependencies: Places.PlacesDependencies & HolderDependencies): Broker.Admin => {
  const { http: usesHttp } = dependencies.settings
  const depths = NsqdQuestions.make(dependencies)

  /** Counts each place, and sums the counts. */
  const count = (name: string, operation: string) =>
    Effect.gen(function* () {
      const all = yield* Places.of(dependencies, name, operation)
      const { answers, missing } = yield* Places.ask(all, ({ http, queue }) => depths(http, queue))
      return { answers, missing, total: NsqdStats.sum(answers.map(({ answer }) => answer)) }
    })

  const browse = (queue: string, limit: number) => Browse.open(queue, limit, count(queue, "browse"), dependencies)

  return {
    counts: (name) =>
      Effect.gen(function* () {
        if (!usesHttp) return { ready: undefined, inFlight: undefined, delayed: undefined }
        const { missing, total } = yield* count(name, "counts")
        return { ...numbersOf(total), ...stateOf(total, missing) }
      }),
    backlog: ({ queue }) =>
      Effect.gen(function* () {
        if (!usesHttp) return silent
        const { missing, total } = yield* count(queue, "counts")
        return { ...told(total), ...stateOf(total, missing) }
      }),
    browse: ({ from, limit, queue }) => (from === "ready" ? browse(queue, limit) : Effect.fail(unsupported(queue))),
    isSame: (one, other) => Effect.succeed(Names.isSame(one, other, dependencies.settings.channel)),
    names: Effect.gen(function* () {
      const { nsqd: found = [] } = dependencies.settings.lookupd.length === 0 ? {} : yield* dependencies.lookup.all
      const nodes = new Set([...dependencies.nodes.given, ...found.map(dependencies.nodes.at)])
      const all = yield* Effect.forEach(nodes, ({ address }) =>
        address.http === undefined ? Effect.succeed([]) : NsqdStats.queues(address.http, dependencies)
      )
      return [...new Set(all.flat().flatMap((queue) => Names.told(queue, dependencies.settings.channel)))]
    }),
    purge: (name) =>
      Effect.gen(function* () {
        const { answers, total } = yield* count(name, "purge")
        if (total.inFlight === 0) {
          for (const { answer, place } of answers) {
            if (answer.ready + answer.delayed > 0) yield* NsqdHttp.empty(place.http, place.queue, dependencies)
          }
          return total.ready + total.delayed
        }
        // Emptying a channel would also remove messages in flight, so messages are removed page by page.
        return yield* Effect.scoped(Effect.flatMap(browse(name, pageSize), removing(total.ready)))
      })
  }
}
