/** The words of contracts for nsqd: connections, commands and requests over the adapter's driver. */
import type { Address, Connection, Driver, HttpInterface, Settings } from "@requeue/adapter-nsq/driver"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import type * as Contract from "../../contract/Contract.ts"

/** A server under contract. */
export interface Server {
  readonly driver: Driver
  readonly settings: Settings
  readonly address: Address
  /** Another name of the same nsqd. */
  readonly alias: Address
  /** The nsqlookupd that knows it. */
  readonly lookupd: HttpInterface
  /** Ends nsqd, and starts it again. */
  readonly restart: (how: "orderly" | "kill") => Effect.Effect<void>
}

export type Bench = Contract.Bench<Server>
export type Row = Contract.Row<Server>

/** The flags of the server of most rows. */
export const flags = {
  maxMsgSize: 1000,
  maxBodySize: 3000,
  maxRdyCount: 10,
  msgTimeout: 60_000,
  maxMsgTimeout: 20_000,
  maxReqTimeout: 10_000
}

/** Where the sources of nsqd are. */
export const nsqd = "https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/"

export const channel = "work"

/** Encodes a command with a body. */
const withBody = (line: string, body: Buffer): Buffer => {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(body.length)
  return Buffer.concat([Buffer.from(`${line}\n`), size, body])
}

export const pub = (topic: string, body: string): Buffer => withBody(`PUB ${topic}`, Buffer.from(body))
export const dpub = (topic: string, delay: number | string, body: string): Buffer =>
  withBody(`DPUB ${topic} ${delay}`, Buffer.from(body))
export const mpub = (topic: string, bodies: ReadonlyArray<string>): Buffer => {
  const count = Buffer.alloc(4)
  count.writeUInt32BE(bodies.length)
  const messages = bodies.map((body) => withBody("", Buffer.from(body)).subarray(1))
  return withBody(`MPUB ${topic}`, Buffer.concat([count, ...messages]))
}

/** A received message. `at` is in monotonic milliseconds. */
export interface Message {
  readonly id: string
  readonly attempts: number
  readonly timestamp: bigint
  readonly body: string
  readonly at: number
}

export interface Consumer {
  readonly connection: Connection
  /** Writes commands, each a line. */
  readonly write: (...commands: ReadonlyArray<string>) => Effect.Effect<void>
  /** Takes the next message. */
  readonly next: Effect.Effect<Message>
  /** Takes the next refusal. */
  readonly refusal: Effect.Effect<string>
  /** Ends with the reason when the connection has closed. */
  readonly closed: Effect.Effect<string>
  /** Whether no message arrives for a moment. */
  readonly isQuiet: Effect.Effect<boolean>
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Monotonic milliseconds. */
export const elapsed = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

/** How long "nothing" takes, in milliseconds. */
const moment = 400

const never = new AbortController().signal

/** Opens a connection that receives messages. */
export const subscribe = (
  { driver: { address, driver, settings } }: Bench,
  topic: string,
  {
    name = channel,
    timeout: messageTimeout,
    settings: own = {}
  }: { readonly name?: string; readonly timeout?: number; readonly settings?: Partial<Settings> } = {}
) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const messages = yield* Queue.unbounded<Message>()
    const refusals = yield* Queue.unbounded<string>()
    const closed = Deferred.makeUnsafe<string>()
    const on = {
      message: (payload: Buffer) =>
        void Queue.offerUnsafe(messages, {
          timestamp: payload.readBigInt64BE(0),
          attempts: payload.readUInt16BE(8),
          id: payload.toString("latin1", 10, 26),
          body: payload.toString("utf8", 26),
          at: Number(clock.monotonicTimeNanosUnsafe()) / 1e6
        }),
      refused: (text: string) => void Queue.offerUnsafe(refusals, text),
      closed: (error: unknown) => void Deferred.doneUnsafe(closed, Exit.succeed(textOf(error)))
    }
    const subscription = { topic, channel: name, messageTimeout }
    const connection = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => driver.subscribe({ ...settings, ...own }, address, subscription, on, never),
        catch: textOf
      }),
      ({ destroy }) => Effect.sync(() => destroy())
    )
    const next = Queue.take(messages)
    const consumer: Consumer = {
      connection,
      write: (...commands) =>
        Effect.callback((resume) =>
          connection.write(commands.map((each) => `${each}\n`).join(""), () => resume(Effect.void))
        ),
      next,
      refusal: Queue.take(refusals),
      closed: Deferred.await(closed),
      isQuiet: Effect.map(Effect.timeoutOption(next, moment), ({ _tag }) => _tag === "None")
    }
    return consumer
  })

/** Opens a connection for publishing. The returned function publishes commands together, and ends with all answers. */
export const publisher = ({ driver: { address, driver, settings } }: Bench) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.tryPromise({ try: () => driver.connectPublisher(settings, address, () => {}, never), catch: textOf }),
      ({ destroy }) => Effect.sync(() => destroy())
    ),
    ({ publish }) =>
      (...commands: ReadonlyArray<Buffer>) =>
        Effect.callback<ReadonlyArray<string>>((resume) => {
          const answers: Array<string> = []
          publish(
            commands.map((command) => ({
              command,
              done: (error: Error | null) => {
                answers.push(error === null ? "OK" : error.message)
                if (answers.length === commands.length) resume(Effect.succeed(answers))
              }
            }))
          )
        })
  )

/** Publishes on a new connection. */
export const publish = (bench: Bench, ...commands: ReadonlyArray<Buffer>) =>
  Effect.flatMap(publisher(bench), (send) => send(...commands))

/** Sends an HTTP request. Returns the status and the JSON of the body, or its text. */
export const ask = (
  { driver: { address, driver } }: Bench,
  method: "GET" | "POST",
  path: string,
  base: HttpInterface = address.http!
): Effect.Effect<readonly [number, unknown], string> =>
  Effect.map(
    Effect.tryPromise({ try: () => driver.ask(base, path, { method, signal: never }), catch: textOf }),
    ({ body, status }) => [status, /^[[{\d]/.test(body) ? (JSON.parse(body) as unknown) : body]
  )

export const createTopic = (bench: Bench, topic: string) => ask(bench, "POST", `topic/create?topic=${topic}`)

/** Creates a topic with a channel. */
export const create = (bench: Bench, topic: string, name = channel) =>
  Effect.andThen(
    createTopic(bench, topic),
    ask(bench, "POST", `channel/create?topic=${topic}&channel=${encodeURIComponent(name)}`)
  )

interface Stats {
  readonly topics: ReadonlyArray<{
    readonly depth: number
    readonly paused: boolean
    readonly channels: ReadonlyArray<{
      readonly channel_name: string
      readonly depth: number
      readonly in_flight_count: number
      readonly deferred_count: number
      readonly client_count: number
      readonly paused: boolean
    }>
  }> | null
}

/** Returns the counts of a topic and its channels, as `depth, in flight, deferred`; `undefined` if it is missing. */
export const counts = (bench: Bench, topic: string) =>
  Effect.map(ask(bench, "GET", `stats?format=json&topic=${encodeURIComponent(topic)}`), ([, json]) => {
    const [found] = (json as Stats).topics ?? [] // nsqd documents it
    if (found === undefined) return undefined
    const channels = found.channels.map(
      ({ channel_name: name, deferred_count: deferred, depth, in_flight_count: inFlight }) =>
        [name, `${depth}, ${inFlight}, ${deferred}`] as const
    )
    return { topic: found.depth, ...Object.fromEntries(channels) }
  })

/** Asks until the answer holds: nsqd does some things in the background. */
export const until = <A, E>(effect: Effect.Effect<A, E>, holds: (answer: A) => boolean): Effect.Effect<A, E> =>
  Effect.flatMap(effect, (answer) =>
    holds(answer) ? Effect.succeed(answer) : Effect.andThen(Effect.sleep(20), until(effect, holds))
  )

/** Counts until nsqd has moved the messages of a topic to its channels. */
export const settled = (bench: Bench, topic: string) => until(counts(bench, topic), (all) => all?.topic === 0)
