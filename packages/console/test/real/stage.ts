/** A console on any broker as it is in production: a consumer that gives messages up until it is mended, and two operators. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { type BrokerName, start } from "@requeue/brokers"
import { Configuration } from "@requeue/config"
import { Broker, Consumer, RetryPolicy } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Authorization, BrokerSource, Console, NodeServer } from "../../src/index.ts"

/** Every broker that is a server. */
export const servers = ["rabbitmq", "nsq", "sqs"] as const

/** The name of a broker. */
type Name = "memory" | (typeof servers)[number]

/** The operators, by their names. */
export const operators = { ann: "ann-has-a-password", bob: "bob-has-another-one" }

const retry = RetryPolicy.make({ maxRetries: 0 })

/** A server of a test, where the broker has one. */
export const serverOf = (name: BrokerName) =>
  Effect.acquireRelease(
    Effect.promise(() => start(name)),
    (broker) => Effect.promise(() => broker.dispose())
  )

/** The folder of a config file that names the broker at a URL. */
const configured = (name: string, url: string | object, queue: string) =>
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "requeue-console-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
    const document = { brokers: { [name]: url }, queues: { [queue]: { retry: { maxRetries: 0 } } } }
    writeFileSync(join(folder, "requeue.config.json"), JSON.stringify(document))
    return folder
  })

/** The broker at a URL, as a config file names it. */
export const sourceOf = (name: string, url: string | object, queue: string) =>
  Effect.gen(function* () {
    const folder = yield* configured(name, url, queue)
    const [source] = yield* BrokerSource.ofConfiguration(yield* Configuration.load({ cwd: folder, environment: {} }))
    return source!
  })

/** A broker, by its name; the memory broker is one for the application and the console. */
export const sourceFor = (name: Name, queue: string) =>
  Effect.gen(function* () {
    if (name !== "memory") return yield* sourceOf(name, (yield* serverOf(name)).url, queue)
    const layer = Layer.succeed(Broker.Broker, yield* MemoryBroker.make())
    return { name, queues: [BrokerSource.queueOf({ name: queue, options: { retry } })], layer, secrets: [] }
  })

/** A queue of its own, where a server is used by others as well. */
export const newQueue = (): string => `orders-${Math.random().toString(36).slice(2, 10)}`

/** The application: its own connection to a broker, and its books. */
export const application = ({ layer }: BrokerSource.BrokerSource, queue: string) =>
  Effect.gen(function* () {
    const broker = Context.get(yield* Layer.build(layer), Broker.Broker)
    const [published, handled, dead] = [new Set<string>(), new Array<string>(), new Set<string>()]
    let [isMended, waiting] = [false, Promise.withResolvers<void>()]
    const open = Effect.provideService(
      Consumer.start(
        queue,
        {
          retry,
          concurrency: 20,
          onEvent: (event) => {
            if (event._tag === "DeadLettered") dead.add(event.id)
            if (event._tag === "DeadLettered" || event._tag === "Succeeded") waiting.resolve()
          }
        },
        ({ body, id }) => {
          if (!isMended) throw new Error(body.cause)
          handled.push(id)
        }
      ),
      Broker.Broker,
      broker
    )
    let consumer = yield* open
    /** Waits until the books say so; they change with each message that has ended. */
    const until = (isSo: () => boolean) =>
      Effect.promise(async () => {
        while (!isSo()) {
          await waiting.promise
          waiting = Promise.withResolvers()
        }
      })
    return {
      handled,
      dead,
      /** Publishes messages of these causes, and waits until the consumer has given all of them up. */
      giveUp: (causes: Readonly<Record<string, number>>) =>
        Effect.gen(function* () {
          isMended = false
          const now = yield* Clock.currentTimeMillis
          const bodies = Object.entries(causes).flatMap(([cause, count]) => Array.from({ length: count }, () => cause))
          const messages = bodies.map((cause) => {
            const id = `order-${published.size}`
            published.add(id)
            const body = new TextEncoder().encode(JSON.stringify({ cause, id }))
            return Outgoing.make({ queue, id, body, headers: {}, delay: 0 }, now)
          })
          yield* broker.publish(messages)
          yield* until(() => dead.size === published.size)
        }),
      /** The consumer takes what comes from now on. */
      mend: () => void (isMended = true),
      /** Ends the consumer. */
      close: Effect.suspend(() => consumer.drain()),
      /** Starts another consumer. */
      reopen: Effect.map(open, (opened) => void (consumer = opened)),
      /** Waits until the consumer has taken so many messages. */
      taken: (count: number) => until(() => new Set(handled).size >= count),
      /** What the broker has in a queue. */
      counts: (name: string) => broker.admin.counts(name)
    }
  })

/** A console of these brokers at a URL, which two operators may use. */
export const consoleOf = (...brokers: ReadonlyArray<BrokerSource.BrokerSource>) =>
  Effect.gen(function* () {
    const users = Object.entries(operators).map(([name, password]) => ({ name, password, role: "purge" }) as const)
    const audit: Array<string> = []
    const console = yield* Console.make({
      brokers,
      audit: (lines) => void audit.push(...lines.trimEnd().split("\n")),
      authorize: Authorization.basic(users)
    })
    return { url: (yield* NodeServer.serve(console, { port: 0 })).href, audit, onEvent: console.onEvent }
  })

const cli = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url))

/** The command `requeue console`, in a process of its own. */
export const commandOf = (name: string, url: string, queue: string) =>
  Effect.gen(function* () {
    const cwd = yield* configured(name, url, queue)
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const flags = ["--conditions=@requeue/source", cli, "console", "--port", "0", "--json"]
        return spawn(process.execPath, flags, { cwd, stdio: ["ignore", "pipe", "ignore"] })
      }),
      (started) =>
        Effect.promise(async () => {
          const ended = once(started, "exit")
          if (started.exitCode === null && started.kill("SIGINT")) await ended
        })
    )
    const told = yield* Effect.promise(() => once(child.stdout.setEncoding("utf8"), "data"))
    const { url: at } = JSON.parse(String(told[0])) as { readonly url: string }
    return {
      url: at,
      /** The most bytes of memory that it has had. https://man7.org/linux/man-pages/man5/proc_pid_status.5.html */
      peak: () => 1024 * Number(/^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1])
    }
  })

/** A broker with a queue whose consumer fails, and a console. */
export const stage = (name: Name) =>
  Effect.gen(function* () {
    const queue = newQueue()
    const source = yield* sourceFor(name, queue)
    const app = yield* application(source, queue)
    const { audit, url } = yield* consoleOf(source)
    return { queue, dead: `${queue}.dlq`, app, audit, url }
  })
