/** The driver, where it would decide otherwise than the options say. */
import * as Context from "effect/Context"
import * as Result from "effect/Result"
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { assert, expect, test, vi } from "vitest"
import { Driver } from "../src/internal/client.ts"
import { NsqOptions } from "../src/index.ts"

const { connectPublisher } = Context.get(Context.empty(), Driver)

/** A frame with a response. https://nsq.io/clients/tcp_protocol_spec.html#data-format */
const response = (text: string): Buffer => {
  const frame = Buffer.alloc(8 + text.length)
  frame.writeUInt32BE(4 + text.length, 0)
  frame.write(text, 8)
  return frame
}

test("connectTimeout alone decides how long nsqd may take to identify itself", async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const connected = once(server, "connection") as Promise<[Socket]>
  const settings = Result.getOrThrow(NsqOptions.decode({ connectTimeout: 60_000 }))
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  try {
    const opening = connectPublisher(
      settings,
      { host: "127.0.0.1", port, http: undefined },
      () => {},
      new AbortController().signal
    )
    const [nsqd] = await connected
    await once(nsqd, "data")
    vi.advanceTimersByTime(50_000)
    nsqd.write(response(JSON.stringify({ version: "1.3.0", max_rdy_count: 2500, msg_timeout: 60_000 })))
    const connection = await opening
    assert.strictEqual(connection.identity.version, "1.3.0")
    connection.destroy()
  } finally {
    vi.useRealTimers()
    server.close()
  }
})

test.each(["HTTP/1.1 400 Bad Request\r\n", "AMQP\0\0\u0009\u0001", "\u0015\u0003\u0001\0\u0002"])(
  "a server whose first answer is no frame of NSQ is told, though it keeps the connection: %j",
  async (answer) => {
    const server = createServer((socket) => socket.on("error", () => {}).write(answer)).listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const settings = Result.getOrThrow(NsqOptions.decode({}))
    const { signal } = new AbortController()
    const opening = connectPublisher(settings, { host: "127.0.0.1", port, http: undefined }, () => {}, signal)
    await expect(opening).rejects.toThrow("the server does not speak NSQ")
    server.close()
  }
)
