/** The fixture of a test: a memory broker on a virtual clock, and its tools. */
import { type Codec, QueueDefinition } from "@requeue/core"
import {
  Broker,
  Delay,
  type Delivery,
  KnownQueues,
  type Message,
  OptionKind,
  OptionNames,
  VirtualClock
} from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import type { Control, Snapshot } from "../../Control.ts"
import * as MemoryBroker from "../../MemoryBroker.ts"
import * as MemoryOptions from "../../Options.ts"
import * as Drive from "./drive.ts"
import * as Journal from "./journal.ts"
import * as RealTime from "./realTime.ts"
import * as Report from "./report.ts"
import type { DeadLetter, IdleOptions, Options, Tools } from "./tools.ts"

/** The broker and its tools. */
export interface Fixture {
  /** The services for the program under test: broker, clock, scheduler and random numbers. */
  readonly context: Context.Context<Broker.Broker>
  readonly tools: Tools
  /** Wraps a handler: the clock then waits for its promises. */
  readonly watch: Drive.Drive["watch"]
}

/** All options and their kinds. */
export const kinds: OptionNames.Of<Options> = { ...MemoryOptions.kinds, promiseTimeout: OptionKind.number(0) }

const day = 24 * 60 * 60 * 1000

/** Opens a broker that lasts as long as the scope. */
export const make = ({ promiseTimeout = 1000, ...options }: Options): Effect.Effect<Fixture, never, Scope.Scope> =>
  Effect.gen(function* () {
    const turns = RealTime.make()
    const time = yield* Effect.provideService(Layer.build(TestClock.layer()), Scheduler.Scheduler, turns.scheduler)
    const clock = VirtualClock.make(
      yield* Effect.provideContext(TestClock.testClockWith(Effect.succeed), time),
      yield* Clock.currentTimeMillis
    )
    const machinery = Context.make(Clock.Clock, clock).pipe(
      Context.add(Scheduler.Scheduler, Context.get(time, Scheduler.Scheduler)),
      Context.add(Random.Random, yield* Random.withSeed(Random.Random, "requeue"))
    )
    const memory = yield* Effect.provideContext(MemoryBroker.makeControlled(options), machinery)
    const drive = Drive.make(clock, turns, promiseTimeout)
    const journal = Journal.make(memory.broker, drive.now)
    return {
      context: Context.add(machinery, Broker.Broker, journal.broker),
      tools: makeTools(memory.control, drive, journal),
      watch: drive.watch
    }
  })

/** The longest duration in a test, in milliseconds. It keeps the time stamps of messages in range. */
const longest = 3650 * day

const idleKinds: OptionNames.Of<IdleOptions> = { within: Delay.kind(0, longest) }

const makeTools = (control: Control, drive: Drive.Drive, journal: Journal.Journal): Tools => {
  let seen = 0
  const queues = (): ReadonlyMap<string, Snapshot> => Effect.runSync(control.queues)
  const left = () => Report.left(queues())
  const lettersOf = (queue: string) =>
    queues()
      .get(queue)
      ?.ready.filter(({ metadata }) => metadata.deadLetter !== undefined) ?? []

  return {
    now: drive.now,
    advance: async (duration) => drive.advance(Delay.constrain("advance: duration", duration, 0, longest)),
    waitUntilIdle: async (idleOptions = {}) => {
      OptionNames.check("waitUntilIdle", idleOptions, idleKinds)
      const { within = 30 * day } = idleOptions
      const timeout = Delay.constrain("waitUntilIdle: within", within, 0, longest)
      const end = await drive.until(() => left().length === 0, timeout)
      if (end === "done") return
      const sentence = Report.sentence(`every consumer to be idle within ${Delay.format(timeout)}`, left())
      throw new Error(`${sentence}${hint(end, drive.now())}`)
    },
    expectNothingElse: async () => {
      await drive.rest()
      const clauses = [...journal.happenings.slice(seen).map(Report.happened), ...left()]
      if (clauses.length > 0) throw new Error(Report.sentence("nothing else", clauses))
    },
    happened: () => {
      const unseen = journal.happenings.slice(seen)
      seen = journal.happenings.length
      return unseen
    },
    sent: async (input) => {
      const { codec, name } = QueueDefinition.from(input)
      const messages = journal.sent.filter(({ queue }) => queue === name)
      return Promise.all(
        messages.map(async ({ at, body, delay, headers, metadata }) => {
          return { at, id: metadata.id, body: await decode(codec, body, headers), headers, delay }
        })
      )
    },
    deadLetters: async (input) => {
      const { codec, name } = QueueDefinition.from(input)
      const isMissing = !queues().has(name)
      const letters = lettersOf(name)
      const isKnown = KnownQueues.isDeadLetterQueue(journal.broker, name)
      if (isMissing || (letters.length === 0 && !isKnown)) {
        const problem = isMissing ? "there is no such queue" : "it is not a dead-letter queue"
        const remedy = isKnown
          ? "Start the consumer whose policy names it first, or correct the name"
          : `For the dead letters of ${name}, use deadLettersOf`
        throw new Error(`deadLetters: ${name}: ${problem}. ${remedy}`)
      }
      return Promise.all(letters.map((delivery) => letter(name, delivery, codec, drive.start)))
    },
    deadLettersOf: async (input) => {
      const { codec, name } = QueueDefinition.from(input)
      // An empty list would hide a misspelled name.
      if (!queues().has(name)) {
        throw new Error(`deadLettersOf: ${name}: there is no such queue. Start its consumer first, or correct the name`)
      }
      return Promise.all(
        KnownQueues.deadLetterQueues(journal.broker, name).flatMap((queue) =>
          lettersOf(queue).map((delivery) => letter(queue, delivery, codec, drive.start))
        )
      )
    },
    finish: async (promise) => {
      let settled = false
      const settle = () => void (settled = true)
      promise.then(settle, settle)
      const end = await drive.until(() => settled, Number.POSITIVE_INFINITY)
      if (end !== "done") throw new Error("finish: the promise is not settled, and moving the clock does not settle it")
      return promise
    }
  }
}

const hint = (end: Drive.End, now: number): string => {
  if (end === "stuck") return ". Nothing waits for the clock. Does a handler never end, or does a puller not pull?"
  if (end === "endless") return `. The clock was moved to ${Delay.format(now)}. Is a message retried for ever?`
  return ""
}

const letter = async <A>(
  queue: string,
  { body, headers, metadata }: Delivery.Delivery,
  codec: Codec.Codec<A, never>,
  start: number
): Promise<DeadLetter<A>> => {
  const { at, attempts, error, queue: origin, reason } = metadata.deadLetter!
  const { message, name } = error
  return {
    at: at - start,
    queue,
    origin,
    id: metadata.id,
    body: await decode(codec, body, headers),
    headers,
    attempts,
    reason,
    error: { name, message },
    history: metadata.history
  }
}

const decode = async <A>(
  codec: Codec.Codec<A, never>,
  body: Uint8Array,
  headers: Message.Headers
): Promise<A | Uint8Array> => {
  try {
    return await codec.decode(body, headers)
  } catch {
    return body
  }
}
