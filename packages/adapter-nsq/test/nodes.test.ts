/** An nsqd is what it says of itself, and not the text of its address. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, test } from "vitest"
import { NsqOptions } from "../src/index.ts"
import * as Known from "../src/internal/connect/known.ts"

/** The HTTP interface of an nsqd. */
const nsqd = async (info: unknown) => {
  const server = createServer((_, response) => response.end(JSON.stringify(info))).listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // it listens on a port
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

const infoOf = (hostname: string, start_time: number) => ({
  version: "1.3.0",
  broadcast_address: hostname,
  hostname,
  http_port: 4151,
  tcp_port: 4150,
  start_time
})

test("one that is reached by two names counts once; others that say less, or something else, count", async () => {
  const servers = await Promise.all([infoOf("a", 1), infoOf("a", 2), infoOf("b", 1), {}, {}].map(nsqd))
  const [a, restarted, b, silent, other] = servers.map(({ url }) => ({ url, tls: {} }))
  const settings = {
    ...Result.getOrThrow(NsqOptions.decode({})),
    nsqd: [a, a, restarted, b, silent, other, undefined, undefined].map((http, index) => ({
      host: `h${index}`,
      port: 4150,
      http
    }))
  }
  try {
    const known = await Effect.runPromise(
      Effect.scoped(Effect.flatMap(Known.make(settings), (dependencies) => Known.of(dependencies, ["t"])))
    )
    assert.deepStrictEqual(
      known.having.map((all) => all.map(({ name }) => name)),
      [["h0:4150", "h2:4150", "h3:4150", "h4:4150", "h5:4150", "h6:4150", "h7:4150"]]
    )
  } finally {
    for (const { close } of servers) close()
  }
})
