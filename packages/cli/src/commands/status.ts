/** `requeue status`: what waits in the queues, and in their dead-letter queues. */
import { Broker, type Counts } from "@requeue/core/Broker"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as DeadLetterTarget from "../DeadLetterTarget.ts"
import * as DurationFlag from "../DurationFlag.ts"
import { Output } from "../Output.ts"
import * as Table from "../Table.ts"
import * as Target from "../Target.ts"

const flags = {
  ...Target.flags,
  watch: Flag.Boolean("watch").pipe(
    Flag.withAlias("w"),
    Flag.withDescription("Go on until interrupted: in place on a terminal, else a line for each look"),
    Flag.withDefault(false)
  ),
  interval: DurationFlag.make("interval", 24 * 60 * 60 * 1000).pipe(
    Flag.withDescription("Time between two looks of --watch. Default: 2s"),
    Flag.withDefault(2000)
  )
}

/** A queue's numbers; `null` where the broker cannot tell. */
interface Status {
  readonly queue: string
  readonly ready: number | null
  readonly inFlight: number | null
  readonly delayed: number | null
  /** By dead-letter queue. */
  readonly dead: Readonly<Record<string, number | null>>
}

const waiting = ({ delayed = 0, ready }: Counts): number | null => (ready === undefined ? null : ready + delayed)

const statusOf = Effect.fnUntraced(function* (queue: Target.Queue) {
  const { admin } = yield* Broker
  const { delayed = null, inFlight = null, ready = null } = yield* admin.counts(queue.name)
  const dead = yield* Effect.forEach(DeadLetterTarget.of(queue), (name) =>
    Effect.map(admin.counts(name), (counts) => [name, waiting(counts)] as const)
  )
  const status: Status = { queue: queue.name, ready, inFlight, delayed, dead: Object.fromEntries(dead) }
  return status
})

/** All of its dead letters; `null` where one of the queues cannot be counted. */
const deadOf = ({ dead }: Status): number | null =>
  Object.values(dead).reduce((sum: number | null, count) => (sum === null || count === null ? null : sum + count), 0)

const cells = (status: Status): ReadonlyArray<number | null> => [
  status.ready,
  status.inFlight,
  status.delayed,
  deadOf(status)
]

const show = (count: number | null): string => String(count ?? "-")

const columns = ["ready", "in flight", "delayed", "dead"]

export const status = Command.make("status", flags, ({ interval, watch, ...rest }) =>
  Effect.gen(function* () {
    const { isScreen, line, paint, redraw, result } = yield* Output
    const target = yield* Target.resolve(rest)
    const look = Effect.forEach(target.queues, statusOf)
    const table = (all: ReadonlyArray<Status>): string =>
      Table.format(
        ["queue", ...columns],
        all.map((each) => {
          const [dead, ...others] = cells(each).toReversed()
          const shown = show(dead ?? null)
          return [each.queue, ...others.toReversed().map(show), dead === 0 ? shown : paint("red", shown)]
        })
      )
    const repeated = Effect.gen(function* () {
      const queues = yield* look
      const at = new Date(yield* Clock.currentTimeMillis).toISOString()
      if (isScreen) yield* redraw(`${target.name}, ${at}\n${table(queues)}`)
      else {
        yield* line({ at, broker: target.name, queues }, () =>
          queues
            .map((each) =>
              [at, each.queue, ...cells(each).map((count, i) => `${columns[i]}: ${show(count)}`)].join("  ")
            )
            .join("\n")
        )
      }
      yield* Effect.sleep(interval)
    })
    const once = Effect.flatMap(look, (queues) => result({ broker: target.name, queues }, () => table(queues)))
    yield* Effect.provide(watch ? Effect.forever(repeated) : once, Target.layer(target))
  })
).pipe(
  Command.withDescription(
    "Shows how many messages of each queue are ready, in flight, delayed and dead; - where the broker cannot tell. " +
      "Dead letters are those in the dead-letter queues that the queue's policy names."
  ),
  Command.withShortDescription("What waits: ready, in flight, delayed, dead"),
  Command.withExamples([
    { command: "requeue status", description: "Every queue of the config file's default broker" },
    { command: "requeue status --queue orders --queue mails --watch", description: "Two of them, all the time" },
    { command: "requeue status --url amqp://localhost --queue orders --json", description: "For a script" }
  ])
)
