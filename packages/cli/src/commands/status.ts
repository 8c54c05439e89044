/** `requeue status`: shows the numbers of queues and of their dead-letter queues. */
import { type Broker, BrokerError } from "@requeue/core"
import { QueueStatus as Status } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as DeadLetterTarget from "../DeadLetterTarget.ts"
import * as DurationFlag from "../DurationFlag.ts"
import * as Existing from "../Existing.ts"
import { Output } from "../Output.ts"
import * as Partial from "../Partial.ts"
import * as Policy from "../Policy.ts"
import * as QueueStatus from "../QueueStatus.ts"
import * as Target from "../Target.ts"
import * as Waiting from "../Waiting.ts"

const flags = {
  ...Target.flags,
  policy: Policy.flag,
  watch: Flag.Boolean("watch").pipe(
    Flag.withAlias("w"),
    Flag.withDescription("Refresh until interrupted: in place on a terminal, else in new lines"),
    Flag.withDefault(false)
  ),
  interval: DurationFlag.make("interval", 24 * 60 * 60 * 1000).pipe(
    Flag.withDescription("Time between two refreshes of --watch. Default: 2s"),
    Flag.withDefault(2000)
  )
}

type Look = Effect.Effect<ReadonlyArray<QueueStatus.QueueStatus>, BrokerError.BrokerError, Broker.Broker | Output>

/** Returns the errors of the parts of the broker that did not answer. */
const missingOf = (queues: ReadonlyArray<QueueStatus.QueueStatus>) => queues.flatMap(({ missing = [] }) => missing)

const isAway = (error: unknown): error is BrokerError.BrokerError =>
  error instanceof BrokerError.BrokerError && error.isRetryable

/** Shows the numbers again and again. While the broker cannot be reached, it shows the error instead. */
const watchFor = (broker: string, look: Look, interval: number) =>
  Effect.gen(function* () {
    const { isScreen, line, paint, redraw } = yield* Output
    const show = Effect.gen(function* () {
      const queues = yield* look
      const at = new Date(yield* Clock.currentTimeMillis).toISOString()
      const partial = [...new Set(missingOf(queues).map(({ message }) => message))]
      const complaints = partial.map((message) => `\n${paint("red", message)}`).join("")
      if (isScreen) return yield* redraw(`${broker}, ${at}\n${QueueStatus.table(queues, paint)}${complaints}`)
      const lines = () => [...queues.map(QueueStatus.line), ...partial].map((text) => `${at}  ${text}`).join("\n")
      yield* line(
        { at, broker, queues: queues.map(QueueStatus.toJson), ...(partial.length === 0 ? {} : { missing: partial }) },
        lines
      )
    })
    const complain = (error: BrokerError.BrokerError) =>
      Effect.gen(function* () {
        const at = new Date(yield* Clock.currentTimeMillis).toISOString()
        if (isScreen) return yield* redraw(`${broker}, ${at}\n${paint("red", error.message)}`)
        yield* line({ at, broker, error: error.message }, () => `${at}  ${error.message}`)
      })
    const showOrComplain = Effect.catchIf(show, isAway, complain)
    yield* Effect.forever(Effect.andThen(showOrComplain, Effect.sleep(interval)))
  })

export const status = Command.make("status", flags, ({ interval, policy, watch, ...rest }) =>
  Effect.gen(function* () {
    const { paint, result } = yield* Output
    const target = yield* Target.resolve(rest, policy)
    const look = Effect.suspend(() => {
      let answered = 0
      const one = (queue: Target.Queue) => Effect.tap(QueueStatus.of(queue), () => Effect.sync(() => void answered++))
      return Waiting.telling(() => `${target.name}: ${answered} of ${target.queues.length} queues have answered`)(
        Effect.forEach(target.queues, one, { concurrency: Status.atOnce })
      )
    })
    const once = Effect.gen(function* () {
      const queues = yield* look
      yield* result({ broker: target.name, queues: queues.map(QueueStatus.toJson) }, () =>
        QueueStatus.table(queues, paint)
      )
      yield* Partial.tell(missingOf(queues))
      const gone = queues.flatMap((each) => (each.isMissing ? [each.queue] : []))
      yield* Existing.check(gone, { known: target.configured.map(({ name }) => name) })
      const dead = queues.flatMap((each) => each.dead.flatMap(({ isMissing, queue }) => (isMissing ? [queue] : [])))
      yield* Existing.check(dead, { known: target.configured.flatMap(DeadLetterTarget.of), isDead: true })
    })
    yield* Effect.provide(watch ? watchFor(target.name, look, interval) : once, Target.layer(target))
  })
).pipe(
  Command.withDescription(
    "Shows the messages of each queue: ready, in flight, delayed and by when they are due, dead, " +
      "undelivered because their queue was gone, the age of the oldest, and the number of consumers. - means unknown, and * marks " +
      "a number with a remark: lines below the table explain both. " +
      "A queue or a dead-letter queue that the broker does not have is missing, and a part of the broker that does not answer is named on " +
      "standard error: then the exit code is 1. " +
      "Dead letters are those in the dead-letter queues of the queue's policy, including those that a reader holds."
  ),
  Command.withShortDescription("Messages that are ready, in flight, delayed, dead"),
  Command.withExamples([
    { command: "requeue status", description: "Every queue of the config file's default broker" },
    { command: "requeue status --queue orders --queue mails --watch", description: "Two of them, refreshed" },
    { command: "requeue status --url amqp://localhost --queue orders --json", description: "For a script" }
  ])
)
