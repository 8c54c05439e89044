/** A console on a memory broker, and a browser without a screen: requests in this process, forms as pages have them. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, type Message } from "@requeue/core"
import { Metadata, Outgoing } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { BrokerSource, Console } from "../src/index.ts"

/** Where the console is, as its requests say. */
export const origin = "http://localhost:4747"

/** The queues, and so their dead-letter queues. */
export const queues = ["orders", "mails"].map((name) => BrokerSource.queueOf({ name, options: {} }))

/** A dead letter that is put into its queue. */
export interface Letter {
  readonly id: string
  readonly body?: string | Uint8Array
  readonly headers?: Message.Headers
  readonly error?: string
  readonly stack?: string
  readonly redrives?: number
  readonly fairBy?: string
}

/** The dead letter as it would have come from a consumer of `orders`. */
export const outgoing = (
  { body = "{}", error = "503 from the shop", fairBy, headers = {}, id, redrives = 0, stack }: Letter,
  now: number
) => {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body
  const made = Outgoing.make({ queue: "orders.dlq", id, body: bytes, headers, delay: 0 }, now)
  const deadLetter: Metadata.DeadLetter = {
    queue: "orders",
    attempts: 4,
    reason: "retries-exhausted",
    at: now,
    error: { name: "Error", message: error, ...(stack === undefined ? {} : { stack }) }
  }
  return { ...made, fairBy, metadata: { ...made.metadata, redrives, deadLetter } }
}

/** Further headers of a request, and the address that it comes from. */
export interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly address?: string
}

/** A page that has arrived. */
export interface Arrived {
  readonly status: number
  readonly headers: Headers
  /** The text, without white space between tags. */
  readonly text: string
}

/** What a browser sends with a form of the page itself. */
export const own = { origin, "sec-fetch-site": "same-origin" }

const flat = (text: string): string =>
  text
    .replaceAll(/\s*\n\s*/g, "\n")
    .replaceAll(/>\s+</g, "><")
    .replaceAll(/>\s+|\s+</g, (around) => around.trim())

/** Requests to a console, by which it is seen and used. */
export const browser = ({ fetch }: Console.Console) => {
  const send = (
    path: string,
    { address = "127.0.0.1", headers }: Sent,
    init: RequestInit,
    forms = {}
  ): Effect.Effect<Arrived> =>
    Effect.promise(async () => {
      const request = new Request(new URL(path, origin), {
        ...init,
        headers: { host: "localhost:4747", ...forms, ...headers }
      })
      const response = await fetch(request, { address })
      return { status: response.status, headers: response.headers, text: flat(await response.text()) }
    })

  const get = (path: string, sent: Sent = {}) => send(path, sent, {})

  const post = (path: string, fields: Readonly<Record<string, string>>, sent: Sent = {}) =>
    send(
      path,
      sent,
      { method: "POST", body: new URLSearchParams(fields).toString() },
      { ...own, "content-type": "application/x-www-form-urlencoded" }
    )

  /** Sends the form of a page that has this address, with further fields. */
  const submit = (page: Arrived, action: string, fields: Readonly<Record<string, string>> = {}, sent: Sent = {}) => {
    const [form] = page.text.match(new RegExp(`<form method="post" action="${action}">.*?</form>`, "s")) ?? [""]
    const hidden = [...form.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(
      ([, name, value]) => [name!, decoded(value!)] as const
    )
    return post(action, { ...Object.fromEntries(hidden), ...fields }, sent)
  }

  /** Goes where a form leads to. */
  const follow = ({ headers, status, text }: Arrived, sent: Sent = {}) =>
    status === 303 ? get(headers.get("location")!, sent) : Effect.die(new Error(`${status} is no redirect: ${text}`))

  /** Loads a page again until it changes no more. */
  const settled = (path: string, sent: Sent = {}): Effect.Effect<Arrived> =>
    Effect.gen(function* () {
      for (let loads = 0; loads < 2000; loads++) {
        const page = yield* get(path, sent)
        if (!page.text.includes("data-live")) return page
        yield* TestClock.adjust("100 millis")
      }
      return yield* Effect.die(new Error(`${path} did not come to its end`))
    })

  return { get, post, submit, follow, settled }
}

/** Text of an attribute as it was before it was escaped. */
export const decoded = (text: string): string =>
  text
    .replaceAll("&quot;", `"`)
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")

/** Makes the queue that letters came from, or another one; it is empty. */
export const queueOfLetters = ({ admin, publish }: Broker.Service, queue = "orders") =>
  Effect.orDie(Effect.andThen(publish([{ ...outgoing({ id: "first" }, 0), queue }]), admin.purge(queue)))

/** The broker of a test, its console, and who uses it. */
export const make = (
  options: Partial<Console.Options> = {},
  memory: Parameters<typeof MemoryBroker.make>[0] = {},
  secrets: ReadonlyArray<string> = []
) =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make(memory)
    yield* queueOfLetters(broker)
    const audit: Array<Record<string, unknown>> = []
    const source: BrokerSource.BrokerSource = {
      name: "local",
      queues,
      layer: Layer.succeed(Broker.Broker, broker),
      secrets
    }
    const console = yield* Console.make({
      brokers: [source],
      audit: (lines) =>
        void audit.push(
          ...lines
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line))
        ),
      ...options
    })
    const publish = (...letters: ReadonlyArray<Letter>) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.orDie(broker.publish(letters.map((letter) => outgoing(letter, now))))
      )
    return { broker, console, audit, publish, ...browser(console) }
  })

/** The page of causes. */
export const deadLetters = "/dead-letters?broker=local&queue=orders.dlq"

/** The first address in a page that leads to this route. */
export const linkTo = ({ text }: Arrived, route: string): string => {
  const [, href] = new RegExp(`href="(${route}\\?[^"]*)"`).exec(text) ?? []
  if (href === undefined) throw new Error(`no link to ${route} in ${text}`)
  return decoded(href)
}

/** The oldest messages of a queue. */
export const shown = ({ admin }: Broker.Service, queue: string, count: number) =>
  Effect.flatMap(admin.browse({ queue, from: "ready", limit: count }), ({ next }) => next(count)).pipe(
    Effect.map((page) => page.map(({ delivery }) => delivery)),
    Effect.scoped
  )
