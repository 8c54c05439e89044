/** Turns changes in the answers of brokers into events. Brokers are asked while a page of events is open. */
import { QueueStatus } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Coming, Events } from "./events.ts"
import type { BrokerView, Overview } from "./overview.ts"

/** Milliseconds between two questions, and until the questions stop after the last page has closed. */
const every = 5000
const goesOn = 70_000

type Status = QueueStatus.QueueStatus

interface Counted {
  readonly name: string
  readonly of: (status: Status) => number | undefined
  readonly isBad: (before: number, after: number) => boolean
}

const isMore = (before: number, after: number): boolean => after > before

/** The numbers whose changes are events. Other numbers of a working queue change all the time. */
const numbers: ReadonlyArray<Counted> = [
  { name: "dead letters", of: QueueStatus.deadOf, isBad: isMore },
  { name: "undelivered", of: ({ undelivered }) => undelivered, isBad: isMore },
  { name: "consumers", of: ({ consumers }) => consumers, isBad: (_, after) => after === 0 }
]

const changed = (before: Status, after: Status): ReadonlyArray<Pick<Coming, "isBad" | "words">> => [
  ...numbers.flatMap(({ isBad, name, of }) => {
    const [one, other] = [of(before), of(after)]
    return one === undefined || other === undefined || one === other
      ? []
      : [{ words: `${name} ${one} → ${other}`, isBad: isBad(one, other) }]
  }),
  ...(before.isMissing === after.isMissing
    ? []
    : [{ words: after.isMissing ? "the queue is missing" : "the queue exists again", isBad: after.isMissing }]),
  ...((before.isPaused ?? false) === (after.isPaused ?? false)
    ? []
    : [
        {
          words: after.isPaused === true ? "paused on the broker" : "resumed on the broker",
          isBad: after.isPaused === true
        }
      ])
]

/** Returns the events between two answers of a broker. */
const between = (before: BrokerView, after: BrokerView): ReadonlyArray<Coming> => {
  const of = { kind: "Broker", broker: after.name } as const
  const isDown = after.trouble !== undefined
  const connection =
    (before.trouble !== undefined) === isDown
      ? []
      : [
          {
            ...of,
            queue: undefined,
            words: isDown ? "does not answer" : "answers again",
            isBad: isDown,
            error: after.trouble === undefined ? undefined : { name: "", message: after.trouble }
          }
        ]
  const queues = after.queues.flatMap(({ queue, status }) => {
    const known = before.queues.find((each) => each.queue === queue)?.status
    return status === undefined || known === undefined
      ? []
      : changed(known, status).map((each) => ({ ...of, queue, ...each }))
  })
  return [...connection, ...queues]
}

/** Keeps asking brokers for a while, because a page is open. */
export type Watch = Effect.Effect<void>

/** Makes a watch, which ends with the scope. */
export const make = (events: Events, overviews: ReadonlyArray<Overview>): Effect.Effect<Watch, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let [until, isRunning] = [0, false]
    let before: ReadonlyArray<BrokerView> = []
    const round = Effect.gen(function* () {
      const after = yield* Effect.forEach(overviews, ({ look }) => look, { concurrency: "unbounded" })
      for (const view of after) {
        const known = before.find(({ name }) => name === view.name)
        for (const coming of known === undefined ? [] : between(known, view)) events.add(coming)
      }
      before = after
      yield* Effect.sleep(every)
    })
    const run = Effect.gen(function* () {
      while ((yield* Clock.currentTimeMillis) < until) yield* round
      // Changes while no page was open are not events of the moment when one opens.
      before = []
    }).pipe(Effect.ensuring(Effect.sync(() => void (isRunning = false))))
    return Effect.gen(function* () {
      until = (yield* Clock.currentTimeMillis) + goesOn
      if (isRunning) return
      isRunning = true
      yield* Effect.forkIn(run, scope)
    })
  })
