import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net"
import { buffer, text } from "node:stream/consumers"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach, assert, beforeEach, test } from "vitest"
import { proxy, type TcpProxy } from "../src/proxy.ts"

let server: Server
let between: TcpProxy
/** The server's ends of the connections. */
let accepted: Array<Socket>

beforeEach(async () => {
  accepted = []
  server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket)
    socket.on("error", () => {})
    socket.pipe(socket)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  between = await proxy((server.address() as AddressInfo).port)
})

afterEach(async () => {
  await between.close()
  server.close()
})

/** Unlike `once` it does not fail when an error comes first. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve))

const dial = async (): Promise<Socket> => {
  const socket = connect({ port: between.port, host: "127.0.0.1", allowHalfOpen: true })
  socket.on("error", () => {})
  await once(socket, "connect")
  return socket
}

const ask = async (socket: Socket, word: string): Promise<string> => {
  socket.write(word)
  const [answer] = (await once(socket, "data")) as [Buffer]
  return answer.toString()
}

test("bytes pass both ways, and the end of each direction by itself", async () => {
  const socket = await dial()
  socket.write("one ")
  socket.end("two")
  assert.strictEqual(await text(socket), "one two")
})

test("a receiver that is slower than its sender gets every byte in order", async () => {
  const socket = await dial()
  const sent = Buffer.alloc(8 << 20, Buffer.from(Array.from({ length: 251 }, (_, index) => index)))
  socket.end(sent)
  assert.isTrue((await buffer(socket)).equals(sent))
})

test("cut resets every connection and lets new ones in", async () => {
  const sockets = await Promise.all([dial(), dial()])
  for (const socket of sockets) assert.strictEqual(await ask(socket, "a"), "a")
  assert.strictEqual(between.connections(), 2)
  const ends = Promise.all([...sockets, ...accepted].map(closed))
  between.cut()
  await ends
  assert.strictEqual(between.connections(), 0)
  assert.strictEqual(await ask(await dial(), "b"), "b")
})

test("a blackhole passes nothing, not even the end, until it is off", async () => {
  const socket = await dial()
  assert.strictEqual(await ask(socket, "before"), "before")
  between.blackhole(true)
  const arrived: Array<string> = []
  socket.on("data", (bytes) => arrived.push(bytes.toString()))
  socket.write("within")
  const late = await dial()
  late.destroy()
  // Nothing can be awaited here: this is about what does not happen.
  await sleep(100)
  assert.deepStrictEqual(arrived, [])
  assert.isTrue(accepted.every((end) => !end.destroyed && !end.readableEnded))
  between.blackhole(false)
  await once(socket, "data")
  assert.deepStrictEqual(arrived, ["within"])
})

test("refuse resets new connections and leaves the others", async () => {
  const old = await dial()
  assert.strictEqual(await ask(old, "a"), "a")
  between.refuse(true)
  await closed(connect(between.port, "127.0.0.1").on("error", () => {}))
  assert.strictEqual(await ask(old, "b"), "b")
  between.refuse(false)
  assert.strictEqual(await ask(await dial(), "c"), "c")
})

test("delay holds bytes up each way", async () => {
  const socket = await dial()
  between.delay(50)
  const began = performance.now()
  assert.strictEqual(await ask(socket, "a"), "a")
  assert.isAtLeast(performance.now() - began, 100)
})

test("a tap sees what passes, by connection and direction", async () => {
  const seen: Array<string> = []
  await between.close()
  const { port } = server.address() as AddressInfo
  between = await proxy(port, (connection, from, bytes) => void seen.push(`${connection} ${from} ${bytes.toString()}`))
  assert.strictEqual(await ask(await dial(), "a"), "a")
  assert.strictEqual(await ask(await dial(), "b"), "b")
  assert.deepStrictEqual(seen, ["1 client a", "1 server a", "2 client b", "2 server b"])
})

test("a server that cannot be reached is a closed connection", async () => {
  const nowhere = await proxy(1)
  await closed(connect(nowhere.port, "127.0.0.1").on("error", () => {}))
  await nowhere.close()
})
