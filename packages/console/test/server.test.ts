/** The console through a real socket, as Node serves it. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Broker } from "@requeue/core"
import { once } from "node:events"
import { createServer, request as httpRequest } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { Authorization, Console, NodeServer } from "../src/index.ts"
import * as World from "./world.ts"

interface Raw {
  readonly status: number | undefined
  readonly text: string
}

/** A request as it stands, with headers that `fetch` would not let through. */
const raw = (url: URL, headers: Readonly<Record<string, string>>): Effect.Effect<Raw> =>
  Effect.promise(
    () =>
      new Promise((resolve, reject) => {
        const sent = httpRequest(url, { headers }, (response) => {
          let text = ""
          response.setEncoding("utf8")
          response.on("data", (part: string) => (text += part))
          response.on("end", () => resolve({ status: response.statusCode, text }))
        })
        sent.on("error", reject).end()
      })
  )

/** Speaks to a socket, and answers all that it says until it ends. */
const spoken = (url: URL, text: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const socket = connect(Number(url.port), "127.0.0.1")
    socket.setTimeout(5000, () => socket.destroy(new Error("it did not end")))
    socket.write(text)
    let said = ""
    for await (const part of socket) said += String(part)
    return said
  })

const open = (options: Partial<Console.Options> = {}) =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    const now = yield* Clock.currentTimeMillis
    yield* broker.publish([World.outgoing({ id: "order-1" }, now)])
    const layer = Layer.succeed(Broker.Broker, broker)
    const source = { name: "local", queues: World.queues, layer, secrets: [] }
    const console = yield* Console.make({ brokers: [source], audit: () => {}, ...options })
    return { console, url: yield* NodeServer.serve(console, { port: 0 }) }
  })

describe("a server", () => {
  it.live("tells the console that a client has gone", () =>
    Effect.gen(function* () {
      const gone: Array<Promise<unknown>> = []
      const server = createServer(
        NodeServer.listener({
          fetch: ({ signal }) => {
            gone.push(once(signal, "abort"))
            return gone.length > 1 ? Promise.resolve(new Response("")) : new Promise(() => {})
          }
        })
      )
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      yield* Effect.promise(async () => once(server.listen(0, "127.0.0.1"), "listening"))
      const sent = httpRequest({ port: (server.address() as AddressInfo).port }) // Its address is a port.
      sent.on("error", () => undefined).end()
      while (gone.length === 0) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      sent.destroy()
      yield* Effect.promise(() => gone[0]!)
    })
  )

  it.live("serves pages, files and events, and refuses other names", () =>
    Effect.gen(function* () {
      const { url } = yield* open()
      const page = yield* raw(url, {})
      assert.strictEqual(page.status, 200)
      const [, style] = /rel="stylesheet"\s+href="([^"]+)"/.exec(page.text)!
      assert.strictEqual((yield* raw(new URL(style!, url), {})).status, 200)
      assert.strictEqual((yield* raw(url, { host: "evil.example" })).status, 421)
      assert.strictEqual((yield* raw(url, { host: "a b" })).status, 400)
      yield* raw(new URL(World.deadLetters, url), {})
      const live = yield* raw(new URL("/live/look?broker=local&queue=orders.dlq", url), {})
      assert.match(live.text, /^event: update\ndata: [\s\S]*event: over\n/)
    })
  )

  it.live("ends the connection of a live page with it, so that no server that closes waits for that", () =>
    Effect.gen(function* () {
      const { url } = yield* open()
      yield* raw(new URL(World.deadLetters, url), {})
      const path = "/live/look?broker=local&queue=orders.dlq"
      assert.include(yield* spoken(url, `GET ${path} HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`), "event: over")
    })
  )

  it.live("ends with its scope, also where somebody still reads", () =>
    Effect.gen(function* () {
      const url = yield* Effect.scoped(Effect.map(open(), ({ url }) => url))
      const refused = yield* Effect.exit(Effect.promise(() => fetch(url)))
      assert.strictEqual(refused._tag, "Failure")
    })
  )

  it.live("listens to more than this machine only with authentication", () =>
    Effect.gen(function* () {
      const { console } = yield* open()
      assert.throws(() => NodeServer.serve(console, { host: "0.0.0.0" }), /needs authentication/)
      assert.throws(() => NodeServer.serve(console, { host: "::" }), /needs authentication/)
      const authorize = Authorization.basic([{ name: "ops", password: "a-long-password", role: "view" }])
      const guarded = yield* open({ authorize })
      assert.throws(() => NodeServer.serve(guarded.console, { host: "0.0.0.0" }), /needs the names of its hosts/)
      const named = yield* open({ authorize, hosts: ["ops.localhost"] })
      const url = yield* NodeServer.serve(named.console, { host: "0.0.0.0", port: 0 })
      assert.match(url.href, /^http:\/\/ops\.localhost:\d+\/$/)
    })
  )

  it.live("is reached by the URL that it tells, whatever its address is", () =>
    Effect.gen(function* () {
      const { console } = yield* open()
      for (const host of ["127.0.0.2", "::1", "::ffff:127.0.0.1", "localhost"]) {
        const url = yield* NodeServer.serve(console, { host, port: 0 })
        assert.strictEqual((yield* raw(url, {})).status, 200, host)
        const headers = { host: `localhost.:${url.port}` }
        assert.strictEqual((yield* raw(url, headers)).status, 200, host)
      }
    })
  )

  it.live("has the headers of its pages on all that Node answers by itself", () =>
    Effect.gen(function* () {
      const { url } = yield* open()
      const get = "GET / HTTP/1.1\r\nhost: localhost\r\n"
      const bad: ReadonlyArray<readonly [string, number]> = [
        ["nonsense\r\n\r\n", 400],
        [`${get}connection: close\r\n\r\n`.replace("localhost", "a b"), 400],
        [`${get}x: ${"x".repeat(20_000)}\r\n\r\n`, 431],
        [`${get}expect: wonders\r\nconnection: close\r\n\r\n`, 417]
      ]
      for (const [sent, status] of bad) {
        const answer = yield* spoken(url, sent)
        assert.include(answer, `HTTP/1.1 ${status} `)
        assert.include(answer, "content-security-policy: default-src 'none'")
      }
    })
  )

  it.live("gets no path that others read in another way", () =>
    Effect.gen(function* () {
      const { url } = yield* open({ base: "/requeue" })
      const head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
      assert.include(yield* spoken(url, `GET /requeue/jobs ${head}`), "200 OK")
      for (const path of ["/x/../requeue/jobs", "/./requeue/jobs", "/%2e/requeue/jobs", "/\\..\\requeue/jobs"]) {
        assert.include(yield* spoken(url, `GET ${path} ${head}`), "400 Bad Request", path)
      }
    })
  )

  it.live("reads nothing more of a form that is too large, and closes", () =>
    Effect.gen(function* () {
      const { url } = yield* open()
      const form = `content-type: application/x-www-form-urlencoded\r\ncontent-length: 100000000`
      const own = `host: localhost:${url.port}\r\norigin: http://localhost:${url.port}`
      // It ends, since the console ends it.
      const answer = yield* spoken(url, `POST /look HTTP/1.1\r\n${own}\r\n${form}\r\n\r\nbroker=local`)
      assert.include(answer, "413 Payload Too Large")
    })
  )

  it.live("is mounted under a path, as Express mounts it", () =>
    Effect.gen(function* () {
      const { console } = yield* open({ base: "/ops" })
      const mounted = NodeServer.listener(console)
      const server = createServer((incoming, outgoing) => {
        const { url = "/" } = incoming
        Object.assign(incoming, { originalUrl: url, url: url.slice("/ops".length) || "/" })
        mounted(incoming, outgoing)
      })
      yield* Effect.acquireRelease(
        Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
        () => Effect.sync(() => server.close().closeAllConnections())
      )
      const { port } = server.address() as AddressInfo // It listens on TCP.
      const page = yield* raw(new URL(`http://127.0.0.1:${port}/ops/jobs`), {})
      assert.match(page.text, /<h1>Jobs<\/h1>/)
    })
  )

  it.live("tells Node's error where the port is taken", () =>
    Effect.gen(function* () {
      const { console, url } = yield* open()
      const taken = yield* Effect.flip(NodeServer.serve(console, { port: Number(url.port) }))
      assert.match(taken.message, /EADDRINUSE/)
    })
  )
})
